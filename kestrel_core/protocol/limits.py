"""How much each input may hold. The defaults stand in `fields`; an operator may have others.

    KESTREL_INPUT_LIMITS="question=131072,stop=4,max_tokens=512"

A limit of a text is in bytes, of a list in entries, of a number its largest value (PRIORITY goes from minus
that). Limits of texts and lists may be raised, those of numbers only lowered.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kestrel_core.protocol.arguments import Argument
from kestrel_core.protocol.errors import InvalidRequest
from kestrel_core.protocol.fields import INPUTS, STOP
from kestrel_core.protocol.names import nearest, shown

EACH_STOP = "stop_bytes"
FIXED = ("SKILL", "IMAGE", "LENGTH", "SEED")  # pictures have limits of their own
NAMES = (*(it.key for it in INPUTS if it.type != "BOOL" and it.name not in FIXED), EACH_STOP)
LARGEST = 64 * 2**20  # of a whole request


@dataclass(frozen=True, slots=True)
class InputLimits:
    most: Mapping[str, int] = field(default_factory=dict)  # by the names above; others are as in `fields`

    @classmethod
    def parse(cls, text: str) -> "InputLimits":
        """From `name=number,...`."""
        most: dict[str, int] = {}
        for part in filter(None, (part.strip() for part in text.split(","))):
            name, _, value = (word.strip() for word in part.partition("="))
            if name not in NAMES:
                raise InvalidRequest(f'input_limits has no "{shown(name)}"{nearest(name, NAMES)}')
            if not value.isascii() or not value.isdigit() or len(value) > 9 or int(value) > LARGEST:
                raise InvalidRequest(
                    f'input_limits has {name}="{shown(value)}"; it must be a number from 0 to {LARGEST:,}'
                )
            most[name] = int(value)
        return cls(most)

    def of(self, argument: Argument) -> Argument:
        """The argument with its limit."""
        most = self.most.get(argument.name)
        if most is None:
            return argument
        if argument.kind is str:
            return replace(argument, max_bytes=most)
        if argument.kind is list:
            return replace(argument, max_items=most)
        return replace(argument, least=max(argument.least, -most), most=min(argument.most, most))

    @property
    def each_stop(self) -> Argument:
        return replace(STOP, max_bytes=self.most.get(EACH_STOP, STOP.max_bytes))


DEFAULTS = InputLimits()
# For who asks: the sizes of texts and lists are for the server to judge, which may have other limits.
OF_THE_SERVER = InputLimits(
    {it.key: LARGEST for it in INPUTS if it.argument.kind in (str, list)} | {EACH_STOP: LARGEST}
)
