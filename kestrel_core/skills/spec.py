"""What a skill is: how to ask the model for something, what that takes, and how to read the answer.

A `SkillSpec` says in data what it takes and whether it streams; whoever checks a request, writes a help text
or a page of documentation reads that. Its two methods turn a request into a prompt and a reply, and the
engine knows nothing else about it.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

from kestrel_core.intake.tokenizer import Tokenizer
from kestrel_core.loop.sequence import Prompt, Reply
from kestrel_core.moondream.config import MoondreamConfig
from kestrel_core.protocol.arguments import Argument
from kestrel_core.protocol.fields import SETTINGS
from kestrel_core.protocol.messages import Request

OF_SAMPLING = ("temperature", "top_p", "top_k", "seed", "adapter")
# A text holds no objects, so any limit of their number is kept.
OF_TEXT = (*OF_SAMPLING, "max_tokens", "max_objects", "stop", "logprobs")
OF_OBJECTS = (*OF_SAMPLING, "max_objects")
assert {*OF_TEXT, *OF_OBJECTS} == SETTINGS.keys()


@dataclass(frozen=True, slots=True)
class Language:
    """What a skill may know of the model: its ids, templates and habits, and its words."""

    config: MoondreamConfig
    tokenizer: Tokenizer


class SkillSpec(ABC):
    """Subclass it, name what it takes, and make a prompt and a reply. examples/custom_skill.py is one."""

    name: str
    meaning: str = ""  # in a few words, for help texts
    arguments: tuple[Argument, ...] = ()  # those of `fields` come as tensors, all others in ARGUMENTS
    image: Literal["required", "optional"] = "required"
    streams: bool = False
    greedy: bool = False  # True: samples are always the likeliest, whatever temperature is asked for
    settings: tuple[str, ...] = tuple(SETTINGS)  # those that mean something to it
    answers: str = ""  # what its output holds, for documents
    hidden: bool = False  # True: for callers in this process, and not told of

    @abstractmethod
    def prompt(self, request: Request, language: Language) -> Prompt:
        """In a worker thread. Raises `InvalidRequest` for arguments that cannot be served."""

    @abstractmethod
    def reply(self, request: Request, language: Language) -> Reply: ...
