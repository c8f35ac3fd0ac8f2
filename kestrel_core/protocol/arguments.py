"""A value that a caller may give, as data: its name, its type, what it may be. One check for all of them.

Arguments of skills, built-in or your own, and settings of answers are all described by an `Argument`; so an
error text, a help text and a page of documentation say the same.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kestrel_core.protocol.errors import InvalidRequest, TooLarge
from kestrel_core.protocol.names import nearest, shown

KINDS = {
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "an object",
}
MAX_TEXT_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Argument:
    name: str
    kind: type = str
    meaning: str = ""
    default: object = None
    required: bool = False
    least: float = -math.inf
    most: float = math.inf
    choices: tuple[str, ...] = ()
    max_bytes: int = MAX_TEXT_BYTES  # of a text, in UTF-8
    max_items: int = 1000  # of a list

    @property
    def label(self) -> str:
        """As error texts name it: the tensor's name, where there is one."""
        return self.name.upper()

    def check(self, value: Any) -> Any:
        """The value, or why it cannot be taken. Costs the same whatever its length."""
        if self.kind is list and not isinstance(value, str | bytes | dict) and hasattr(value, "__len__"):
            if len(value) > self.max_items:
                raise TooLarge(
                    f"{self.label} has {len(value):,} entries; at most {self.max_items:,} are taken"
                )
            return value
        if self.kind in (int, float):
            return self._number(value)
        if not isinstance(value, self.kind):
            raise InvalidRequest(f"{self.label} is {_described(value)}; it must be {KINDS[self.kind]}")
        if isinstance(value, str):
            return self._text(value)
        return value

    def _number(self, value: Any) -> Any:
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if not is_whole and not (self.kind is float and isinstance(value, float)):
            raise InvalidRequest(f"{self.label} is {_described(value)}; it must be {KINDS[self.kind]}")
        if not self.least <= value <= self.most:  # so NaN is out too
            raise InvalidRequest(f"{self.label} is {value}; it can be {self.range}")
        return self.kind(value)

    def _text(self, value: str) -> str:
        # A letter has at least one byte: so only texts that may be short enough are encoded to be counted.
        if len(value) > self.max_bytes or len(value.encode("utf-8", "surrogatepass")) > self.max_bytes:
            raise TooLarge(
                f"{self.label} has more than {self.max_bytes:,} bytes, which is its limit; shorten it"
            )
        if not value.isprintable() and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise InvalidRequest(f"{self.label} is not UTF-8 text")
        if self.choices and value not in self.choices:
            raise InvalidRequest(f'{self.label} is "{shown(value)}"; it can be {self.range}')
        return value

    @property
    def range(self) -> str:
        """What it may be, in words; empty where anything may be."""
        if self.choices:
            return f"{', '.join(self.choices[:-1])} or {self.choices[-1]}"
        if self.kind in (int, float) and not (math.isinf(self.least) and math.isinf(self.most)):
            return f"from {self.least:g} to {self.most:g}"
        return ""


def checked(known: Iterable[Argument], given: Mapping[str, Any], unknown: str) -> dict[str, Any]:
    """What was given, each checked, without what is None. `unknown` begins the text about any other name."""
    by_name = {argument.name: argument for argument in known}
    taken = {}
    for name, value in given.items():
        if name not in by_name:
            raise InvalidRequest(f'{unknown} "{shown(name)}"{nearest(str(name), by_name)}')
        if value is not None:
            taken[name] = by_name[name].check(value)
    return taken


def _described(value: object) -> str:
    if isinstance(value, str | bool | int | float) or value is None:
        return shown(repr(value))
    return f"a {type(value).__name__}"
