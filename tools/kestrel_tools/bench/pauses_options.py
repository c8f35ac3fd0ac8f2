"""What `kestrel bench pauses` takes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from kestrel_core.config import CHOICES
from kestrel_core.protocol.errors import InvalidRequest
from kestrel_tools.options import Option, several, words


@dataclass(frozen=True, slots=True)
class Pauses:
    """how long streams wait for their next token while others send pictures

    Streams decode all the while, first alone, then while requests about new pictures arrive at a rate that
    does not depend on the answers. Several policies are measured over one model.
    """

    streams: Annotated[Sequence[int], several("that decode (16)")] = (16,)
    pictures_per_s: Annotated[Sequence[int], several("that arrive, for each of --streams (30)")] = (30,)
    seconds: Annotated[float, Option("with pictures (%(default)g); a third of it before, without")] = 12.0
    policies: Annotated[
        Sequence[str],
        Option(
            "values of vision_pacing, each with :N for picture_steps (as configured)",
            type=words,
            metavar="POLICY,...",
        ),
    ] = ()
    even: Annotated[bool, Option("pictures arrive at even intervals, not at random")] = False
    callers: Annotated[int, Option("in a closed loop behind each policy's last row, without streams")] = 0
    caller_tokens: Annotated[int, Option("of their answers (%(default)s)", metavar="N")] = 3

    def __post_init__(self) -> None:
        numbers = (*self.streams, *self.pictures_per_s, self.caller_tokens)
        if not self.streams or len(self.streams) != len(self.pictures_per_s) or min(numbers) < 1:
            raise InvalidRequest("streams and pictures-per-s are numbers of 1 or more, as many of each")
        if not self.seconds > 0 or self.callers < 0:
            raise InvalidRequest("there must be seconds to measure, and no fewer than 0 callers")
        for policy in self.policies:
            pacing, colon, steps = policy.partition(":")
            if pacing not in CHOICES["vision_pacing"] or (colon and not (steps.isdigit() and int(steps))):
                raise InvalidRequest(
                    f'"{policy}" is no policy: {", ".join(CHOICES["vision_pacing"])}, or with :N'
                )

    @property
    def pairs(self) -> list[tuple[int, int]]:
        return list(zip(self.streams, self.pictures_per_s, strict=True))

    @property
    def quiet_s(self) -> float:
        return self.seconds / 3

    @property
    def num_charts(self) -> int:
        """Enough that none comes back while anything remembers it."""
        return max(64, int(1.3 * max(self.pictures_per_s) * self.seconds), 5 * self.callers)
