"""How the fake provider encrypts reasoning: a scheme of its own, so that nothing real is forged.

What is sealed names its organisation and carries a check of itself, so that the provider knows its own, another's, and
what is neither.
"""

from __future__ import annotations

import base64
import hashlib
import itertools

OWN, OTHER = "org-own", "org-other"
_BEGIN = "gAAAAA"
_salts = itertools.count(1)


def seal(organization: str = OWN, salt: str = "", size: int = 96) -> str:
    """Encrypted content as this organisation gets it; without a salt each is another. `size`: bytes of filling."""
    salt = salt or f"n{next(_salts)}"
    filling = (hashlib.sha256(salt.encode()).digest() * (size // 32 + 1))[:size]
    body = f"{organization}|{salt}|".encode() + filling
    return _BEGIN + base64.urlsafe_b64encode(body + _check(body)).decode()


def verdict(sealed: str, organization: str = OWN) -> str | None:
    """Why the provider can't read it, in its own words; None where it can."""
    if not sealed.startswith(_BEGIN):
        return "Encrypted content could not be decrypted or parsed."
    try:
        whole = base64.urlsafe_b64decode(sealed[len(_BEGIN) :].encode())
    except ValueError:
        return "Encrypted content could not be decrypted or parsed."
    body, check = whole[:-16], whole[-16:]
    if check != _check(body):
        return "Encrypted content could not be decrypted or parsed."
    if body.split(b"|")[0].decode() != organization:
        return "Encrypted content organization_id did not match the target organization."
    return None


def _check(body: bytes) -> bytes:
    return hashlib.sha256(b"fake provider" + body).digest()[:16]
