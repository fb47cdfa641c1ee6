"""What the user's own configuration of OpenCode, or of a fork, says of a provider: its SDK, and where it is asked.

Of a custom provider nothing else tells the SDK.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from stat import S_ISREG
from typing import Any
from urllib.parse import urlsplit

from recoveryd.clients.opencode import protocols
from recoveryd.clients.opencode.protocols import is_own_host
from recoveryd.core import Failure

_LARGEST = 1024 * 1024  # bytes of a configuration
# What never ends is one token up to the end of the text: else each quote in it would be tried anew, for hours.
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*(?:"|\\?\Z)|//[^\n]*|/\*.*?(?:\*/|\Z)|,(?=\s*[}\]])', re.DOTALL)
_PROTOCOLS = {
    "@ai-sdk/anthropic": "anthropic.messages",
    "@ai-sdk/google-vertex/anthropic": "anthropic.messages",
    "@ai-sdk/amazon-bedrock": "bedrock.converse",
    "@openrouter/ai-sdk-provider": "openrouter.chat",
    "@ai-sdk/github-copilot": "copilot.chat",
    "@ai-sdk/google": "google.generate",
    "@ai-sdk/google-vertex": "google.vertex",
    "@ai-sdk/openai": "openai.responses",
    "@ai-sdk/azure": "azure.responses",
    "@ai-sdk/openai-compatible": "openai.chat",
    "@ai-sdk/mistral": "mistral.chat",
    "@ai-sdk/xai": "xai.chat",
}
_MESSAGES = "@ai-sdk/anthropic"
# Where the client's own gateway is asked, by its catalog (that of 1.18.34), with models of these names.
_ZEN = "opencode"
_ASKED_ON_ZEN = (
    (re.compile(r"claude-"), "https://opencode.ai/zen/v1/messages"),
    (re.compile(r"gpt-\d"), "https://opencode.ai/zen/v1/responses"),
)
_FAMILY = ("opencode", "kilo", "mimocode")
_HIDDEN = (".opencode", ".kilo", ".kilocode", ".mimocode")
# What the SDKs go by where no configuration says anything.
_BASE_VARIABLES = {"anthropic": "ANTHROPIC_BASE_URL", "openai": "OPENAI_BASE_URL"}


@dataclass(frozen=True, slots=True)
class _Places:
    """Where a client looks for its configuration: names of files, in the order in which it merges them.

    `folder`: the user's own, with `names` in it. `projects`: in each folder of a project, group by group. `hidden`:
    folders beside those, and in the user's home, with `inner` in them. `variables`: what its variables begin with.
    """

    folder: str
    names: tuple[str, ...]
    projects: tuple[tuple[str, ...], ...]
    hidden: tuple[str, ...]
    inner: tuple[str, ...]
    variables: str


_OWN = ("opencode.json", "opencode.jsonc")
_OPENCODE = _Places("opencode", ("config.json", *_OWN), (_OWN,), (".opencode",), _OWN, "OPENCODE_CONFIG")
# Of Kilo 7.7.9, as it merged them (tests/e2e/test_kilo.py): it reads files of OpenCode's name too, but not its folders.
_KILOS = ("kilo.json", "kilo.jsonc")
_KILO = _Places(
    "kilo",
    ("config.json", *_KILOS, *_OWN),
    (_KILOS, _OWN),
    (".kilocode", ".kilo"),
    (*_KILOS[::-1], *_OWN[::-1]),
    "KILO_CONFIG",
)
_PLACES = {"kilo": _KILO}  # of the others nothing is known: as OpenCode


@dataclass(frozen=True, slots=True)
class _Provider:
    """What one file says of a provider. `own`: the SDKs of single models, by their names, which go before `package`;
    `called`: the names that the provider gets, of those that are called otherwise; `addresses`: where it is asked, for
    all or some of its models; `base`: that of its options, which goes before the others; `returned`: the models whose
    reasoning is sent back as `reasoning_content`, as `interleaved` says.
    """

    package: str = ""
    base: str = ""
    own: Mapping[str, str] = field(default_factory=dict)
    called: Mapping[str, str] = field(default_factory=dict)
    addresses: tuple[str, ...] = ()
    returned: frozenset[str] = frozenset()

    @property
    def packages(self) -> list[str]:
        """All SDKs that are named, with those of single models."""
        return [package for package in (self.package, *self.own.values()) if package]


def protocol_of(
    provider: str, directory: str = "", root: str = "", client: str = _OPENCODE.folder, *, model: str = ""
) -> str:
    """Tell what is spoken to a provider by the configuration of a `client` that was started in `directory`; "" where
    that does not say. A `model` may have an SDK of its own.

    `root`: where its project ends, which the client stores with each answer; "" to look for it. What the variables of
    the client's own shell say is known only as far as they are ours, too. Never raises.
    """
    return _PROTOCOLS.get(_package(_said_of(provider, _merged(directory, root, client)), model), "")


def _said_of(provider: str, files: Iterable[Mapping[str, _Provider] | None]) -> list[_Provider]:
    """List what each file says of a provider that names it, in the order in which the client merges them."""
    return [one for said in files if said and (one := said.get(provider)) is not None]


def _package(said: Iterable[_Provider], model: str) -> str:
    """Return the SDK by which a model is asked: its own, or else its provider's; "" where none is named."""
    package = own = ""
    for one in said:
        package, own = one.package or package, one.own.get(model, "") or own
    return own or package


def as_asked(failure: Failure, directory: str = "", root: str = "", client: str = _OPENCODE.folder) -> Failure:
    """Add to a failure what the configuration says of its provider: the protocol, the name that it knows the model by,
    and the address that the error does not tell, as that of a conversation that is too long (see `protocol_of`).
    """
    files = list(_merged(directory, root, client))
    error, said = failure.error, _said_of(failure.provider, files)
    if not error.url and None not in files:
        error = replace(error, url=_messages_address(failure, said))
    called = "".join([one.called[failure.model] for one in said if failure.model in one.called][-1:])
    if "{" in called:  # what stands in braces the client's shell says: the name in the configuration has to do
        called = ""
    spoken = _PROTOCOLS.get(_package(said, failure.model), "")
    return replace(failure, error=error, protocol=spoken, called=called)


def _messages_address(failure: Failure, said: Sequence[_Provider]) -> str:
    """Tell where a model is asked in the form of Anthropic's, and the client's own gateway for GPT; "" where no address
    is said of all models of its provider.
    """
    bases = [one.base for one in said if one.base][-1:]  # the last file wins
    addresses = {address.rstrip("/") for address in bases or (a for one in said for a in one.addresses)}
    if not (addresses or any(one.packages for one in said)):
        at_zen = (address for models, address in _ASKED_ON_ZEN if models.match(failure.model))
        return next(at_zen, "") if failure.provider == _ZEN else ""
    package = _package(said, failure.model)
    spoken = package == _MESSAGES or (not package and failure.provider == "anthropic")
    told = addresses.pop() if spoken and len(addresses) == 1 else ""
    return f"{told}/messages" if told and "{" not in told else ""  # what stands in braces the client's shell says


def reasoning_advice(failure: Failure, directory: str, client: str) -> str:
    """Name the line that has the client send a model of Kimi its reasoning back, as it does for the makers' own
    providers; "" for other models. Never raises.

    Where that line was there already, the call never had any: OpenCode 1.1 and 1.2 leave the field out then.
    """
    custom = protocols.protocol_of(failure) == "openai.chat" and not failure.provider.startswith("moonshotai")
    if not custom or not re.search("kimi|moonshot", f"{failure.model} {failure.called}".lower()):
        return ""
    file = _PLACES.get(client, _OPENCODE).projects[0][0]
    if any(failure.model in one.returned for one in _said_of(failure.provider, _merged(directory, "", client))):
        return f'prompt it again if `"interleaved"` was put into {file} since'
    return (
        f'give {failure.model} `"interleaved": {{"field": "reasoning_content"}}` among the models of '
        f"{failure.provider} in {file}: the client then sends it back"
    )


def asks_its_maker(provider: str, directory: str = "", *told: str, client: str = _OPENCODE.folder) -> bool:
    """Whether nothing leads `provider` to another service than its own: no configuration, and no address in `told`.

    Whichever file says it counts, one of a fork too: which of them the client goes by may depend on its shell. One that
    can't be read may say anything. Never raises.
    """
    files = list(_merged(directory, "", client, family=True))
    if None in files:
        return False
    said = _said_of(provider, files)
    addresses = {*told, *(address for one in said for address in one.addresses)}
    addresses.add(os.environ.get(_BASE_VARIABLES.get(provider, ""), ""))
    known = all(package in _PROTOCOLS for one in said for package in one.packages)
    return known and all(_is_own(provider, address) for address in addresses - {""})


def _is_own(provider: str, address: str) -> bool:
    try:
        host = urlsplit(address).hostname or ""
    except ValueError:
        return False
    return is_own_host(provider, host)


def _merged(
    directory: str, root: str, client: str, *, family: bool = False
) -> Iterator[Mapping[str, _Provider] | None]:
    """Go through what each configuration says, in the order in which the client merges them: a later one wins. None for
    one that can't be read.

    `family`: those of OpenCode and all its forks.
    """
    env, places = os.environ.get, _PLACES.get(client, _OPENCODE)
    home, named, folder = (env(name, "") for name in ("HOME", places.variables, f"{places.variables}_DIR"))
    home = home or str(Path.home())
    config = env("XDG_CONFIG_HOME") or f"{home}/.config"
    for path in _files(places, directory, root or _root_of(directory), config, home, named, folder, family=family):
        try:
            stat = os.stat(path)  # noqa: PTH116 - asked at each look at a session, of a dozen places
            if S_ISREG(stat.st_mode):
                yield _providers(path, stat.st_mtime_ns, stat.st_size)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError, RecursionError):
            yield None
    if content := env(f"{places.variables}_CONTENT"):
        try:
            yield _named(content)
        except (ValueError, RecursionError):
            yield None


@lru_cache(maxsize=64)
def _files(
    places: _Places, directory: str, root: str, config: str, home: str, named: str, folder: str, *, family: bool
) -> tuple[str, ...]:
    """List the files that may configure a client, whether they are there or not. Of texts, as it is asked at each look.

    `directory`, `root`: where it was started, and where its project ends; `config`, `home`: the user's; `named`,
    `folder`: what the client's variables name. `family`: those of OpenCode and all its forks.
    """
    around = _around(directory, root)
    files = [Path(config, places.folder, name) for name in places.names]
    files += _of_the_family(Path(config), around) if family else []
    files += [Path(named)] if named else []
    files += [place / name for names in places.projects for place in reversed(around) for name in names]
    hidden = dict.fromkeys(place / name for place in (*around, Path(home)) for name in places.hidden)
    files += [place / name for place in (*hidden, *([Path(folder)] if folder else [])) for name in places.inner]
    return tuple(map(str, files))


def _of_the_family(home: Path, around: Sequence[Path]) -> list[Path]:
    """List the files of OpenCode's forks, and those of the machine's administrator."""
    names = [f"{client}.{suffix}" for client in _FAMILY for suffix in ("json", "jsonc")]
    folders = [place / client for place in (Path("/etc"), home) for client in _FAMILY]
    folders += [place for folder in around for place in (folder, *(folder / hidden for hidden in _HIDDEN))]
    return [folder / name for folder in folders for name in (_OPENCODE.names[0], *names)]


def _around(directory: str, root: str) -> list[Path]:
    """List the folders from the session's own up to the root of its project; none where it is not told."""
    if not directory.startswith("/"):
        return []
    folders = [Path(directory), *Path(directory).parents]
    end = next((at for at, folder in enumerate(folders) if folder == Path(root)), None)
    return folders[: end + 1] if end is not None else folders[:1]


def _root_of(directory: str) -> str:
    """Look for the root of the project around a folder, as the client does."""
    folders = [Path(directory), *Path(directory).parents] if directory.startswith("/") else []
    return next((str(folder) for folder in folders if _is_project(folder)), "/")


def _is_project(folder: Path) -> bool:
    try:
        return (folder / ".git").exists()
    except OSError:
        return False


@lru_cache(maxsize=64)
def _providers(path: str, mtime_ns: int, size: int) -> Mapping[str, _Provider]:
    """Read what a configuration says of each provider. It is read again once it changed. OSError, ValueError."""
    del mtime_ns
    if size > _LARGEST:
        raise ValueError("too large to be a configuration")
    return _named(Path(path).read_text(encoding="utf-8-sig", errors="replace"))


def _named(text: str) -> Mapping[str, _Provider]:
    config = json.loads(_plain(text))
    providers = config.get("provider") if isinstance(config, dict) else None
    found = providers.items() if isinstance(providers, dict) else ()
    return {name: _said(settings) for name, settings in found if isinstance(settings, dict)}


def _said(settings: Mapping[str, Any]) -> _Provider:
    """Read one provider: `npm`, `api`, `options.baseURL`, of Bedrock `options.endpoint`; a model may have an SDK, an
    address, and a field for its reasoning (`interleaved`) of its own."""
    models = settings.get("models")
    listed = models.items() if isinstance(models, dict) else ()
    each = {name: model for name, model in listed if isinstance(model, dict)}
    single = {name: one for name, model in each.items() if isinstance(one := model.get("provider"), dict)}
    called = {name: other for name, model in each.items() for other in _texts([model.get("id")])}
    own = {name: package for name, one in single.items() for package in _texts([one.get("npm")])}
    said = [settings, *single.values()]
    options = settings.get("options")
    base, endpoint = (options.get("baseURL"), options.get("endpoint")) if isinstance(options, dict) else ("", "")
    addresses = _texts([*(one.get("api") for one in said), base, endpoint])
    package = _texts([settings.get("npm")])
    fields = {name: one for name, model in each.items() if isinstance(one := model.get("interleaved"), dict)}
    returned = frozenset(name for name, one in fields.items() if one.get("field") == "reasoning_content")
    return _Provider("".join(package), "".join(_texts([base])), own, called, addresses, returned)


def _texts(values: Iterable[object]) -> tuple[str, ...]:
    return tuple(value for value in values if isinstance(value, str) and value)


def _plain(text: str) -> str:
    """Return JSON without the comments and the last commas that the client allows."""
    for _ in range(2):  # a comma may stand before a comment
        text = _TOKEN.sub(lambda token: token[0] if token[0].startswith('"') else "", text)
    return text
