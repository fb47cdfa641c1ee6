"""How a family is known by where it was asked: the protocol, the address in the error, the provider's name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from recoveryd.core import Failure


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One protocol at one door of a provider: by which addresses and names it is known.

    `path` is what the address ends in. A failure without an address is told by `providers`; one with it also by its
    host, unless `alone`: nobody else has such a path.
    """

    protocol: str
    path: re.Pattern[str]
    hosts: tuple[str, ...] = ()
    providers: re.Pattern[str] = re.compile(r"(?!)")
    alone: bool = False

    def spoke(self, failure: Failure) -> bool:
        """Whether a failure came from here. What the client says of the protocol is believed, if the path fits."""
        host, path = host_and_path(failure)
        if path and not self.path.search(path):
            return False
        if failure.protocol:
            return failure.protocol == self.protocol
        by_address = bool(path) and (self.alone or in_domain(host, self.hosts))
        return by_address or self.providers.fullmatch(failure.provider) is not None

    def is_own(self, failure: Failure) -> bool:
        """Whether one of its hosts was asked; where no address is told, whether the provider has one of its names."""
        host, _ = host_and_path(failure)
        return in_domain(host, self.hosts) if host else self.providers.fullmatch(failure.provider) is not None


def in_domain(host: str, domains: tuple[str, ...]) -> bool:
    """Whether the host of an endpoint is one of these domains, or within one."""
    return any(host == domain or host.endswith(f".{domain}") for domain in domains)


def host_and_path(failure: Failure) -> tuple[str, str]:
    """Return host and path of the endpoint that a failure's error tells; "" and "" when it tells none."""
    url = failure.error.url
    try:
        parts = urlsplit(url)
        return ((parts.hostname or "").rstrip("."), parts.path.rstrip("/") or "/") if "://" in url else ("", "")
    except ValueError:
        return "", ""
