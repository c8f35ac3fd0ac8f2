"""Skills: how to ask the model for something, and how to read its answer.

A `SkillSpec` turns a request into a prompt and a reply; the engine knows nothing else about it. A third party
adds one with `SkillRegistry.with_skill`, without touching the engine.
"""

from dataclasses import dataclass
from typing import Protocol

from kestrel_core.intake.tokenizer import Tokenizer
from kestrel_core.loop.sequence import Prompt, Reply
from kestrel_core.moondream.config import MoondreamConfig
from kestrel_core.protocol.errors import InvalidRequest
from kestrel_core.protocol.messages import Request


@dataclass(frozen=True, slots=True)
class Language:
    """What a skill may know of the model: its ids, templates and habits, and its words."""

    config: MoondreamConfig
    tokenizer: Tokenizer


class SkillSpec(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def greedy(self) -> bool:
        """True: samples are always the likeliest, whatever temperature is asked for."""
        ...

    def prompt(self, request: Request, language: Language) -> Prompt:
        """Raises `InvalidRequest` for arguments that cannot be served."""
        ...

    def reply(self, request: Request, language: Language) -> Reply: ...


class SkillRegistry:
    def __init__(self, *skills: SkillSpec) -> None:
        self._skills = {skill.name: skill for skill in skills}

    def with_skill(self, skill: SkillSpec) -> "SkillRegistry":
        return SkillRegistry(*self._skills.values(), skill)

    def __getitem__(self, name: str) -> SkillSpec:
        if name not in self._skills:
            raise InvalidRequest(
                f'there is no skill "{name}"; this server has {", ".join(sorted(self._skills))}'
            )
        return self._skills[name]
