"""The skills every server has."""

from kestrel_core.skills.segment import SegmentSkill
from kestrel_core.skills.spatial import SpatialSkill
from kestrel_core.skills.spec import SkillRegistry
from kestrel_core.skills.text import CaptionSkill, QuerySkill, TokensSkill


def standard_skills() -> SkillRegistry:
    return SkillRegistry(
        QuerySkill(),
        CaptionSkill(),
        SpatialSkill("detect"),
        SpatialSkill("point"),
        SegmentSkill(),
        TokensSkill(),
    )
