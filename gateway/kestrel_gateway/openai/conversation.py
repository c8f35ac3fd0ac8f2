"""A conversation becomes one question about one picture, which is what Moondream can be asked.

A single text of the user is asked as it is. Otherwise the question is, with empty lines between:

    the texts of the system
    the turns before the last, a line each: "User: ..." or "Assistant: ..."
    the last text of the user

The last picture counts, in whichever turn it stands. A second one is refused by its name rather than
forgotten in silence.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from kestrel_core.protocol.fields import ARGUMENTS
from kestrel_gateway.errors import blaming
from kestrel_gateway.openai.reading import refused

Role = Literal["system", "developer", "user", "assistant"]
SPEAKERS = {"user": "User", "assistant": "Assistant"}


class Picture(NamedTuple):
    value: Any  # as it was sent
    part: str  # where it stands: messages[0].content[1]


@dataclass(frozen=True, slots=True)
class Turn:
    role: Role
    texts: tuple[str, ...]
    pictures: tuple[Picture, ...]
    param: str

    @property
    def text(self) -> str:
        return "\n".join(self.texts)


@dataclass(frozen=True, slots=True)
class Conversation:
    """`question` is all of it as one text; `last` is the user's last text alone, as it was sent."""

    question: str
    last: str
    picture: Picture | None
    param: str  # where `last` stands


def read_conversation(turns: Sequence[Turn], param: str) -> Conversation:
    """`param` is the field of the body that the turns come from."""
    spoken = [turn for turn in turns if turn.role in SPEAKERS]
    if not spoken or spoken[-1].role != "user":
        raise refused(param, f"{param} must end with what the user says; the model answers that")
    *earlier, last = spoken
    if not last.text.strip():
        raise refused(last.param, f"{last.param} has no text; say what you want to know")
    system = "\n".join(turn.text for turn in turns if turn.role not in SPEAKERS)
    lines = "\n".join(f"{SPEAKERS[turn.role]}: {turn.text}" for turn in earlier if turn.text)
    question = "\n\n".join(part for part in (system, lines, last.text) if part)
    with blaming(param):
        ARGUMENTS["question"].argument.check(question)
    return Conversation(question, last.text, _picture(turns), last.param)


def _picture(turns: Sequence[Turn]) -> Picture | None:
    for turn in turns:
        if turn.pictures and turn.role != "user":
            first = turn.pictures[0].part
            raise refused(first, f"{first} is a picture of the {turn.role}; only the user shows pictures")
    *others, last = [None, *(picture for turn in turns for picture in turn.pictures)]
    for other in others:
        if other is not None and last is not None:
            raise refused(
                other.part,
                f"{other.part} is a picture, and so is {last.part}; "
                "the model looks at one, so leave all but the last out",
            )
    return last
