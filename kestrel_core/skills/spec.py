"""What a skill is: how to ask the model for something, what that takes, and how to read the answer.

A `SkillSpec` says as data what it takes and whether it streams: requests are checked against that, and help
texts and documents are made of it. Its two methods turn a request into a prompt and a reply. The engine knows
nothing else about it.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Literal

from kestrel_core.intake.tokenizer import Tokenizer
from kestrel_core.loop.sequence import Prompt, Reply
from kestrel_core.moondream.config import MoondreamConfig
from kestrel_core.protocol.about import SkillAbout
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
    arguments: tuple[Argument, ...] = ()  # those in `protocol.fields` come as tensors, others in ARGUMENTS
    image: Literal["required", "optional"] = "required"
    streams: bool = False
    greedy: bool = False  # True: samples are always the likeliest, whatever temperature is asked for
    settings: tuple[str, ...] = tuple(SETTINGS)  # those that mean something to it
    answers: str = ""  # what its output holds, for documents
    hidden: bool = False  # True: help texts, documents and error texts do not mention it

    def with_defaults(self, request: Request) -> Request:
        """The request, with the defaults of arguments that it leaves out."""
        defaults = {
            argument.name: argument.default
            for argument in self.arguments
            if argument.default is not None and request.arguments.get(argument.name) is None
        }
        return replace(request, arguments={**request.arguments, **defaults}) if defaults else request

    def is_known_to(self, language: Language) -> bool:
        """Whether this model has the skill. If not, `prompt` says so with `UnsupportedSkill`."""
        return True

    def about(self, language: Language) -> SkillAbout:
        return SkillAbout(
            self.name,
            self.meaning,
            self.answers,
            self.image,
            self.streams,
            self.is_known_to(language),
            self.settings,
            self.arguments,
        )

    @abstractmethod
    def prompt(self, request: Request, language: Language) -> Prompt:
        """In a worker thread. Raises `InvalidRequest` for arguments that cannot be served."""

    @abstractmethod
    def reply(self, request: Request, language: Language) -> Reply: ...
