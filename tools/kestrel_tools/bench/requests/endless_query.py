"""Answers of exactly so many tokens: a query to which the end token is a word like any other.

What is read from the model, and how, stays the query skill's own; only the end is not taken for one. Random
weights choose the end token now and then (one in 51,200 tokens, one in 768 of the tiny model's), and trained
ones after a word or two: both would make a measurement count other work than it says.
"""

from kestrel_core.loop.sequence import Reply
from kestrel_core.protocol.messages import Request
from kestrel_core.skills.registry import SkillRegistry, builtin_skills
from kestrel_core.skills.spec import Language
from kestrel_core.skills.text import QuerySkill, TextReply

NO_TOKEN = -1


class EndlessReply(TextReply):
    """Goes on until `max_tokens`."""

    def __init__(self, request: Request, language: Language) -> None:
        super().__init__(request, language, "answer")
        self._end = NO_TOKEN


class EndlessQuery(QuerySkill):
    def reply(self, request: Request, language: Language) -> Reply:
        return EndlessReply(request, language)


def endless_skills() -> SkillRegistry:
    """The standard skills, with a query that does not end by itself. Callers ask as usual."""
    return builtin_skills().with_skill(EndlessQuery())
