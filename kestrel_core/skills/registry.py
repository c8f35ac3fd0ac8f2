"""Which skills there are: the built-in ones, those of installed packages, and those that `KESTREL_SKILLS`
names.

There is one registry: the engine and the Triton model look skills up in it, requests are checked against it,
and command lines and documents list it.
"""

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

from kestrel_core.protocol.about import ABOUT
from kestrel_core.protocol.arguments import checked
from kestrel_core.protocol.errors import InvalidRequest, UnknownSkill
from kestrel_core.protocol.fields import ARGUMENTS, SETTINGS
from kestrel_core.protocol.limits import DEFAULTS, InputLimits
from kestrel_core.protocol.messages import Request, check_request
from kestrel_core.protocol.names import nearest, shown
from kestrel_core.skills.segment import SegmentSkill
from kestrel_core.skills.spatial import DetectSkill, PointSkill
from kestrel_core.skills.spec import Language, SkillSpec
from kestrel_core.skills.text import CaptionSkill, QuerySkill, TokensSkill

GROUP = "kestrel.skills"  # of entry points: each loads a SkillSpec, its class, or a list of them


class SkillRegistry:
    def __init__(self, skills: Iterable[SkillSpec] = (), limits: InputLimits = DEFAULTS) -> None:
        self._limits = limits
        self._skills: dict[str, SkillSpec] = {}
        for skill in skills:
            if not isinstance(skill, SkillSpec) or not getattr(skill, "name", ""):
                raise InvalidRequest(f"{skill!r} is no skill: it must be a SkillSpec with a name")
            if skill.name == ABOUT:
                raise InvalidRequest(f'a skill is called "{ABOUT}", which asks what a server is; rename it')
            if skill.name in self._skills:
                raise InvalidRequest(f'there are two skills called "{skill.name}"; rename one')
            self._skills[skill.name] = skill

    def with_skill(self, *skills: SkillSpec) -> "SkillRegistry":
        """A registry with these too. A new skill replaces one of the same name."""
        names = {getattr(skill, "name", "") for skill in skills}
        kept = (one for one in self._skills.values() if one.name not in names)
        return SkillRegistry([*kept, *skills], self._limits)

    def within(self, limits: InputLimits) -> "SkillRegistry":
        """The same skills, which take no more than these limits allow."""
        return SkillRegistry(self._skills.values(), limits)

    def public(self) -> "SkillRegistry":
        """Without the hidden ones: those that callers outside this process may ask."""
        return SkillRegistry(self, self._limits)

    def __iter__(self) -> Iterator[SkillSpec]:
        """All but the hidden ones."""
        return (skill for skill in self._skills.values() if not skill.hidden)

    @property
    def names(self) -> list[str]:
        return [skill.name for skill in self]

    def __getitem__(self, name: str) -> SkillSpec:
        if not name:
            raise InvalidRequest(f"SKILL is required: {', '.join(self.names)}")
        if name not in self._skills:
            raise UnknownSkill(f'there is no skill "{shown(name)}"{nearest(name, self.names)}')
        return self._skills[name]

    def check(self, request: Request) -> SkillSpec:
        """The skill of a request, which can take all of it. Long texts cost no more than short ones."""
        skill = self[request.skill]
        check_request(request, self._limits)
        own = {argument.name for argument in skill.arguments}
        # Some clients fill in every input: a false REASONING is taken by skills that do not know it.
        given = {
            key: value
            for key, value in request.arguments.items()
            if value is not None and (key in own or value is not False or key not in ARGUMENTS)
        }
        taken = checked(map(self._limits.of, skill.arguments), given, f"{skill.name} takes no")
        for argument in skill.arguments:
            value = taken.get(argument.name)
            if argument.required and value is None:
                raise InvalidRequest(f"{argument.label} is required for {skill.name}")
            if isinstance(value, str) and not value.strip():
                raise InvalidRequest(f"{argument.label} is empty; say what is meant")
        if request.image is None and skill.image == "required":
            raise InvalidRequest(f"IMAGE is required for {skill.name}")
        if request.stream and not skill.streams:
            streaming = " and ".join(skill.name for skill in self if skill.streams)
            raise InvalidRequest(f"STREAM is for {streaming}; {skill.name} answers in one piece")
        self._check_settings(skill, request)
        return skill

    def _check_settings(self, skill: SkillSpec, request: Request) -> None:
        settings, default = request.settings, type(request.settings)()
        for name in type(settings).__dataclass_fields__:
            if name not in skill.settings and getattr(settings, name) != getattr(default, name):
                instead = "; MAX_OBJECTS is its limit" if name == "max_tokens" else ""
                raise InvalidRequest(f"{name.upper()} means nothing to {skill.name}{instead}; leave it out")

    def with_defaults(self, request: Request, language: Language) -> Request:
        """The request, with the defaults of arguments that it leaves out, and with an operator's limits of
        settings that it leaves out where the model's own defaults are larger.
        """
        lowered: dict[str, Any] = {}
        for name in self._limits.most.keys() & SETTINGS.keys():
            setting = self._limits.of(SETTINGS[name].argument)
            default = getattr(language.config.dialog, name, None)
            if getattr(request.settings, name) is None and default is not None and default > setting.most:
                lowered[name] = setting.kind(max(setting.least, setting.most))
        if lowered:
            request = replace(request, settings=replace(request.settings, **lowered))
        return self[request.skill].with_defaults(request)


def builtin_skills() -> SkillRegistry:
    return SkillRegistry(
        [QuerySkill(), CaptionSkill(), DetectSkill(), PointSkill(), SegmentSkill(), TokensSkill()]
    )


def installed_skills(named: str | None = None) -> SkillRegistry:
    """The built-in ones, those of entry points, and those of `named`, which is what KESTREL_SKILLS holds:
    `module:name` or `file.py:name`, several by comma.
    """
    found: list[SkillSpec] = []
    for entry in metadata.entry_points(group=GROUP):
        found += _skills_at(entry.value, entry.load)
    for place in filter(None, (part.strip() for part in (named or "").split(","))):
        found += _skills_at(place, lambda place=place: _load(place))  # type: ignore[misc]
    return builtin_skills().with_skill(*found)


def _skills_at(place: str, load: Callable[[], object]) -> list[SkillSpec]:
    try:
        return _skills_of(load(), place)
    except InvalidRequest:
        raise
    except Exception as error:  # it is not our code
        said = f"{type(error).__name__}: {error}"
        raise InvalidRequest(f'skills names "{shown(place)}", which cannot be loaded: {said}') from error


def _load(place: str) -> object:
    module_name, _, name = place.rpartition(":")
    if not module_name or not name:
        raise InvalidRequest(f'skills names "{shown(place)}"; it takes module:name or file.py:name')
    module = _module(module_name)
    if not hasattr(module, name):
        raise InvalidRequest(f'skills names "{shown(place)}", and {module_name} has no {name}')
    return getattr(module, name)


def _module(name: str) -> ModuleType:
    if name.endswith(".py"):
        path = Path(name)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        if spec is None or spec.loader is None or not path.is_file():
            raise ImportError(f"there is no file {path.name}")
        module = importlib.util.module_from_spec(spec)
        sys.modules.setdefault(path.stem, module)  # where dataclasses look for it
        spec.loader.exec_module(module)
        return module
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))  # where the server was started
    return importlib.import_module(name)


def _skills_of(found: object, place: str) -> list[SkillSpec]:
    """A skill, its class, or several of them."""
    skills: list[SkillSpec] = []
    for one in found if isinstance(found, list | tuple | SkillRegistry) else [found]:
        skill = one() if isinstance(one, type) and issubclass(one, SkillSpec) else one
        if not isinstance(skill, SkillSpec):
            raise InvalidRequest(f'skills names "{shown(place)}", which is no SkillSpec')
        skills.append(skill)
    return skills
