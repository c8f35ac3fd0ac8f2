"""The file of keys: TOML, checked strictly, so that a slip of the pen lets nobody in and locks nobody out.

salt_cache = true                 # optional, for all keys, and true unless said: nobody learns from the cache
                                  # what another asked

[[keys]]
name = "alice"
sha256 = "<64 hex digits>"        # of the key; the key itself stands nowhere
requests_per_minute = 60          # these and what follows are optional
concurrent = 4
skills = ["query", "detect"]
adapters = ["a@1"]
priority = [-5, 10]               # the best and the worst that it may ask for; [0, 10] unless said
"""

import hashlib
import re
import secrets
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from kestrel_core.protocol.errors import KestrelError
from kestrel_core.protocol.fields import BY_NAME
from kestrel_core.protocol.names import nearest, shown

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")
SHA256 = re.compile(r"[0-9a-fA-F]{64}")
MAX_COUNT = 1_000_000
PRIORITY = BY_NAME["PRIORITY"].argument
USUAL_PRIORITY = (0, int(PRIORITY.most or 0))  # nobody goes before others who was not told so
PREFIX = "kestrel-"  # so that a key that is found somewhere says what it is


@dataclass(frozen=True, slots=True)
class Key:
    name: str
    digest: bytes  # sha256 of the key
    requests_per_minute: int | None = None
    concurrent: int | None = None
    skills: frozenset[str] | None = None  # None is all of them
    adapters: frozenset[str] | None = None
    priority: tuple[int, int] = USUAL_PRIORITY  # the best and the worst that it may ask for
    salt_cache: bool = True

    def salted(self, own: str) -> str:
        """A salt that nobody can guess who has not read the file. `own` is the one that the caller gave."""
        return hashlib.sha256(b"kestrel cache salt" + self.digest + own.encode()).hexdigest()[:32]


def digest_of(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()


def make_key(name: str) -> tuple[str, str]:
    """A new key, and the lines of the file that let it in."""
    if not NAME.fullmatch(name):
        raise KestrelError(_bad_name(name))
    key = PREFIX + secrets.token_urlsafe(32)
    return key, f'[[keys]]\nname = "{name}"\nsha256 = "{digest_of(key.encode()).hex()}"\n'


def read_keys(path: Path) -> tuple[Key, ...]:
    """The keys of a file; or one sentence says what is wrong with it."""
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise KestrelError(f"the keys cannot be read from {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise KestrelError(f"{path} is not TOML: {shown(str(error))}") from None
    try:
        return _parse(document)
    except KestrelError as error:
        raise KestrelError(f"{path}: {error}") from None


def _parse(document: Mapping[str, Any]) -> tuple[Key, ...]:
    _check_names(document, ("keys", "salt_cache"), "the file")
    salt_cache = _flag(document.get("salt_cache", True), "the file")
    rows = document.get("keys", [])
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise KestrelError('there is no key; each begins with a line [[keys]] and has name = "..."')
    keys = [_key(row, number, salt_cache) for number, row in enumerate(rows, 1)]
    names, digests = set(), set()
    for key in keys:
        if key.name in names:
            raise KestrelError(f"there are two keys {key.name}; give each a name of its own")
        if key.digest in digests:
            raise KestrelError(f"key {key.name} has the sha256 of another; make a new one with --new-key")
        names.add(key.name)
        digests.add(key.digest)
    return tuple(keys)


def _key(row: Mapping[str, Any], number: int, salt_cache: bool) -> Key:
    name = row.get("name")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise KestrelError(f"key {number} of the file: {_bad_name(name)}")
    who = f"key {name}"
    _check_names(row, FIELDS, who)
    digest = row.get("sha256")
    if not isinstance(digest, str) or not SHA256.fullmatch(digest):
        raise KestrelError(f"{who}: sha256 must be 64 hex digits, as --new-key writes them")
    return Key(
        name,
        bytes.fromhex(digest),
        _count(row, "requests_per_minute", who),
        _count(row, "concurrent", who),
        _texts(row, "skills", who),
        _texts(row, "adapters", who),
        _priorities(row.get("priority", list(USUAL_PRIORITY)), who),
        _flag(row.get("salt_cache", salt_cache), who),
    )


FIELDS = tuple("sha256" if field.name == "digest" else field.name for field in fields(Key))


def _check_names(given: Mapping[str, Any], known: Sequence[str], who: str) -> None:
    for name in given:
        if name not in known:
            raise KestrelError(f'{who} has an unknown field "{shown(name)}"{nearest(name, known)}')


def _flag(value: Any, who: str) -> bool:
    if not isinstance(value, bool):
        raise KestrelError(f"{who}: salt_cache must be true or false")
    return value


def _priorities(value: Any, who: str) -> tuple[int, int]:
    least, most = PRIORITY.least, PRIORITY.most
    assert least is not None and most is not None
    is_pair = isinstance(value, list) and len(value) == 2 and all(type(it) is int for it in value)
    if not is_pair or not least <= value[0] <= value[1] <= most:
        raise KestrelError(
            f"{who}: priority must be the best and the worst that it may ask for, as in [{least}, {most}]"
        )
    return value[0], value[1]


def _count(row: Mapping[str, Any], field: str, who: str) -> int | None:
    value = row.get(field)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_COUNT:
        raise KestrelError(f"{who}: {field} must be a whole number from 1 to {MAX_COUNT:,}")
    return value


def _texts(row: Mapping[str, Any], field: str, who: str) -> frozenset[str] | None:
    value = row.get(field)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(text, str) and text for text in value):
        raise KestrelError(f"{who}: {field} must be a list of names")
    if field == "skills" and not value:
        raise KestrelError(f"{who}: skills is empty, so nothing may be asked; name some, or leave it out")
    return frozenset(value)


def _bad_name(name: object) -> str:
    return f"name is {shown(repr(name))}; it must be 1 to 64 letters, digits or any of . _ @ + -"
