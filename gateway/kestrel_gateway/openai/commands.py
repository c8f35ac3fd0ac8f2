"""Slash commands: `/detect {"object": "cat"}` as the user's last text runs that skill.

What comes back is the skill's document as JSON text, coordinates from 0 to 1; for `/caption` too, so that
whoever sends a command can always parse what it gets. A slash and any other word is plain text, and so is
`/query`: a question needs no command.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from kestrel_core.protocol.arguments import MAX_TEXT_BYTES
from kestrel_core.protocol.asking import OF_A_REQUEST, make_request
from kestrel_core.protocol.errors import InvalidRequest, TooLarge
from kestrel_core.protocol.messages import EngineResult, Request
from kestrel_core.protocol.names import shown
from kestrel_core.skills.registry import builtin_skills
from kestrel_gateway.rest import document

SKILLS = builtin_skills()
NAMES = "|".join(name for name in SKILLS.names if name != "query")
COMMAND = re.compile(rf"\s*/({NAMES})(?![^\s{{])(.*)", re.DOTALL)
OF_THE_ANSWER = ("request_id", "finish_reason", "metrics", "logprobs")  # not of the skill's document


class Command(NamedTuple):
    skill: str
    arguments: dict[str, Any]


def read_command(text: str) -> Command | None:
    found = COMMAND.fullmatch(text)
    if found is None:
        return None
    skill, rest = found[1], found[2].strip()
    if len(rest) > MAX_TEXT_BYTES:  # before it is read: a text may hold millions of values
        raise TooLarge(f"what stands after /{skill} has more than {MAX_TEXT_BYTES:,} letters; shorten it")
    try:
        arguments = msgspec.json.decode(rest) if rest else {}
    except (msgspec.DecodeError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        example = '{"length": "short"}' if skill == "caption" else '{"object": "cat"}'
        raise InvalidRequest(
            f'after /{skill} stands "{shown(rest)}"; it must be a JSON object, such as /{skill} {example}'
        )
    return Command(skill, arguments)


def command_request(command: Command, image: bytes | None, settings: Mapping[str, Any]) -> Request:
    """Settings may stand in the command or beside the conversation; those in the command come first.

    Of the latter, `max_tokens` is for texts: many clients always send it, and objects have `max_objects`.
    """
    takes_tokens = "max_tokens" in SKILLS[command.skill].settings
    for name in command.arguments:
        if name in OF_A_REQUEST or name in ("image", "image_url", "stream", "model"):
            raise InvalidRequest(f"{name} is no argument of /{command.skill}")
    beside = {
        name: value
        for name, value in settings.items()
        if command.arguments.get(name) is None and (name != "max_tokens" or takes_tokens)
    }
    return make_request(command.skill, image, {**command.arguments, "settings": beside})


def command_document(result: EngineResult) -> str:
    given = {name: value for name, value in document(result).items() if name not in OF_THE_ANSWER}
    return msgspec.json.encode(given).decode()
