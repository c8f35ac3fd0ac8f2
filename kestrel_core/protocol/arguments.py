"""A value that a caller may give, as data: its name, its type, what it may be. One check for all of them.

Arguments of skills, built-in or your own, and settings of answers are all described by an `Argument`; so an
error text, a help text and a page of documentation say the same.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kestrel_core.protocol.errors import InvalidRequest, TooLarge
from kestrel_core.protocol.names import nearest, shown

KIND_WORDS = {
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
    default: object = None  # what the skill is given if the caller gives nothing
    required: bool = False
    least: float = -math.inf
    most: float = math.inf
    choices: tuple[str, ...] = ()
    max_bytes: int = MAX_TEXT_BYTES  # of a text, in UTF-8
    max_items: int = 1000  # of a list
    setting: str = field(default="", compare=False)  # an operator's, which changes these limits

    @property
    def label(self) -> str:
        """How error texts name it: by its tensor, if it has one."""
        return self.name.upper()

    @property
    def named_setting(self) -> str:
        return f" ({self.setting})" if self.setting else ""

    def check(self, value: Any) -> Any:
        """The value; or an error says why it cannot be taken. Long values cost no more than short ones."""
        if self.kind is list and not isinstance(value, str | bytes | dict) and hasattr(value, "__len__"):
            if len(value) > self.max_items:
                raise TooLarge(
                    f"{self.label} has {len(value):,} entries; at most {self.max_items:,} are taken"
                    f"{self.named_setting}"
                )
            return value
        if self.kind in (int, float):
            return self._number(value)
        if not isinstance(value, self.kind):
            raise self._of_wrong_kind(value)
        if isinstance(value, str):
            return self._text(value)
        return value

    def _number(self, value: Any) -> Any:
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if not is_whole and not (self.kind is float and isinstance(value, float)):
            raise self._of_wrong_kind(value)
        try:
            if self.least <= value <= self.most:  # which NaN is not
                return self.kind(value)
        except OverflowError:  # a whole number too large for a float
            pass
        wanted = self.range or "a number of up to 308 digits"
        raise InvalidRequest(f"{self.label} is {_described(value)}; it can be {wanted}")

    def _of_wrong_kind(self, value: object) -> InvalidRequest:
        wanted = KIND_WORDS.get(self.kind) or f"a {self.kind.__name__}"
        return InvalidRequest(f"{self.label} is {_described(value)}; it must be {wanted}")

    def _text(self, value: str) -> str:
        # A letter has at least one byte, so a text with too many letters need not be encoded to be counted.
        if len(value) > self.max_bytes or len(value.encode("utf-8", "surrogatepass")) > self.max_bytes:
            raise TooLarge(
                f"{self.label} has more than {self.max_bytes:,} bytes, which is its limit"
                f"{self.named_setting}; shorten it"
            )
        if not value.isprintable() and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise InvalidRequest(f"{self.label} is not UTF-8 text")
        if self.choices and value not in self.choices:
            raise InvalidRequest(f'{self.label} is "{shown(value)}"; it can be {self.range}')
        return value

    @property
    def range(self) -> str:
        """What it may be, in words; empty if there is no limit."""
        if self.choices:
            *others, last = self.choices
            return f"{', '.join(others)} or {last}" if others else last
        if self.kind not in (int, float) or (math.isinf(self.least) and math.isinf(self.most)):
            return ""
        if math.isinf(self.most):
            return f"{_digits(self.least)} or more"
        return f"from {_digits(self.least)} to {_digits(self.most)}"


def checked(known: Iterable[Argument], given: Mapping[str, Any], unknown: str) -> dict[str, Any]:
    """All values that are not None, checked. `unknown` begins the error about a name that is not known."""
    by_name = {argument.name: argument for argument in known}
    taken = {}
    for name, value in given.items():
        if name not in by_name:
            raise InvalidRequest(f'{unknown} "{shown(name)}"{nearest(str(name), by_name)}')
        if value is not None:
            taken[name] = by_name[name].check(value)
    return taken


def to_float(value: Any) -> float:
    """As `float`, but texts and truth values are no numbers."""
    if isinstance(value, str | bytes | bool):
        raise TypeError(f"{type(value).__name__} is no number")
    return float(value)


def _digits(limit: float) -> str:
    return f"{limit:,}" if isinstance(limit, int) else f"{limit:g}"


def _described(value: object) -> str:
    if isinstance(value, int) and value.bit_length() > 10_000:  # longer ones Python refuses to write
        return "a number of thousands of digits"
    if isinstance(value, str | bool | int | float) or value is None:
        return shown(repr(value))
    return f"a {type(value).__name__}"
