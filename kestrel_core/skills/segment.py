"""Segment: the request is understood; the published weights keep the skill's token protocol to themselves."""

from kestrel_core.errors import InvalidRequest, UnsupportedSkill
from kestrel_core.messages import Request
from kestrel_core.sequence import Prompt, Reply
from kestrel_core.skills import Language
from kestrel_core.skills.arguments import argument, spatial_inputs


class SegmentSkill:
    name = "segment"
    greedy = True

    def prompt(self, request: Request, language: Language) -> Prompt:
        argument(request, "object", str)
        spatial_inputs(request)
        if request.image is None:
            raise InvalidRequest("IMAGE is required for segment")
        raise UnsupportedSkill(
            "segment is not supported by this model: its prompt and path tokens are not published; "
            "use detect for boxes or point for points"
        )

    def reply(self, request: Request, language: Language) -> Reply:
        raise UnsupportedSkill("segment is not supported by this model")
