"""Segment: boxes with the outline of what is in them.

The prompt and path tokens of the published weights are not public, so the skill is refused unless the config
has `tokenizer.templates.segment`; `moondream-tiny` does. The grammar is our own. After the prompt

    prefix, the words " " + object, suffix

the answer is any number of objects and then the end token:

    answer  = object* end            end is eos_id
    object  = x y size path close    x with the decision "another one?"; close is end_ground_id
    path    = subpath+
    subpath = open vertex*           open is start_ground_points_id
    vertex  = x y                    each a coordinate token with its value

x, y and size are those of detect: the box's centre and its sides. A vertex is relative to the box: (0, 0) is
its top left corner, (1, 1) its bottom right one. Subpaths are closed and fill by the even-odd rule: a second
one inside the first is a hole. Each becomes `M x y L x y ... Z`, still relative to the box, in `svg_path`.

Models make mistakes: an x without its y is dropped, and so is a subpath of fewer than three vertices, which
encloses nothing. An object whose path was not closed is left out, as half an outline is none.
"""

from typing import Any

from kestrel_core.loop.sequence import GO_ON, Outcome, Prompt, Reply
from kestrel_core.loop.step import Kind, Readout, Sample
from kestrel_core.protocol.errors import InvalidRequest, UnsupportedSkill
from kestrel_core.protocol.messages import Request
from kestrel_core.skills.arguments import takes
from kestrel_core.skills.spatial import READ_COORD, READ_SIZE
from kestrel_core.skills.spec import OF_OBJECTS, Language, SkillSpec


class SegmentSkill(SkillSpec):
    name = "segment"
    meaning = "outlines of everything that fits the words"
    arguments = (takes("object", required=True), takes("spatial_refs"))
    greedy = True
    settings = OF_OBJECTS
    answers = "`segments`: an SVG path and a box each"

    def is_known_to(self, language: Language) -> bool:
        return language.config.tokenizer.templates.segment is not None

    def prompt(self, request: Request, language: Language) -> Prompt:
        template = language.config.tokenizer.templates.segment
        if template is None:
            raise UnsupportedSkill(
                "segment is not supported by this model: its prompt and path tokens are not published; "
                "use detect for boxes or point for points"
            )
        if request.arguments.get("spatial_refs") is not None:
            raise InvalidRequest("SPATIAL_REFS are not known to segment of this model")
        words = language.tokenizer.encode(" " + request.arguments["object"])
        return Prompt((*template.prefix, *words, *template.suffix), True)

    def reply(self, request: Request, language: Language) -> Reply:
        return OutlinesReply(request, language)


class OutlinesReply:
    """Reads object by object: a fixed beginning, and then a path until the model closes it."""

    def __init__(self, request: Request, language: Language) -> None:
        ids, dialog = language.config.tokenizer, language.config.dialog
        self._ids = ids
        self._objects_left = request.settings.max_objects or dialog.max_objects
        self._path_left = dialog.max_tokens  # readouts, over all paths
        # As for detect: the first decision weighs all tokens.
        later = Readout(Kind.OBJECT, choices=(ids.coord_id, ids.eos_id) if dialog.two_way_objects else ())
        opening = Readout(Kind.GROUNDED, choices=(ids.start_ground_points_id, ids.end_ground_id))
        self._first = Readout(Kind.OBJECT)
        self._beginning = (later, READ_COORD, READ_SIZE, opening)
        self._path = Readout(Kind.GROUNDED, choices=(ids.coord_id, *opening.choices))
        self._at = 0  # samples taken of the present object
        self._x = self._y = 0.0
        self._box: dict[str, float] = {}
        self._subpaths: list[list[float]] = []  # x and y in turn
        self._found: list[dict[str, Any]] = []

    def readout(self, ahead: int = 0) -> Readout:
        index = self._at + ahead
        if index == 0 and not self._found:
            return self._first
        return self._beginning[index] if index < len(self._beginning) else self._path

    def take(self, sample: Sample) -> Outcome:
        kind = self.readout().kind
        self._at += 1
        if kind is Kind.GROUNDED:
            return self._follow(sample)
        if kind is Kind.OBJECT:
            if sample.token == self._ids.eos_id:
                return Outcome(finish="stop")
            assert sample.coord is not None
            self._x = sample.coord
        elif kind is Kind.COORD:
            assert sample.coord is not None
            self._y = sample.coord
        else:
            assert sample.size is not None
            width, height = sample.size
            self._box = {
                "x_min": self._x - width / 2,
                "y_min": self._y - height / 2,
                "x_max": self._x + width / 2,
                "y_max": self._y + height / 2,
            }
        return GO_ON

    def _follow(self, sample: Sample) -> Outcome:
        self._path_left -= 1
        if sample.token == self._ids.end_ground_id:
            return self._close()
        if sample.token == self._ids.start_ground_points_id:
            self._subpaths.append([])
        else:
            assert sample.coord is not None
            self._subpaths[-1].append(sample.coord)
        return GO_ON if self._path_left else self.cut()

    def _close(self) -> Outcome:
        self._found.append({"svg_path": svg_path(self._subpaths), "bbox": self._box})
        self._subpaths, self._at = [], 0
        self._objects_left -= 1
        if not self._objects_left or not self._path_left:
            return Outcome(finish="length")
        # A step planned ahead reads more of the path; feeding something else makes it void.
        return Outcome(feed=(self._ids.end_ground_id,))

    def cut(self) -> Outcome:
        return Outcome(finish="length")

    def output(self) -> dict[str, Any]:
        return {"segments": self._found}


def svg_path(subpaths: list[list[float]]) -> str:
    """Closed polygons of flat coordinates, in at most four digits: bins are 1/1024 wide."""
    drawn = []
    for flat in subpaths:
        vertices = [f"{x:.4g} {y:.4g}" for x, y in zip(flat[::2], flat[1::2], strict=False)]
        if len(vertices) > 2:
            drawn.append(f"M {' L '.join(vertices)} Z")
    return " ".join(drawn)
