"""Point and detect: x and y (and a size) of one object after the other, until the model ends."""

from typing import Any

from kestrel_core.loop.sequence import GO_ON, Outcome, Prompt, Reply
from kestrel_core.loop.step import Kind, Readout, Sample
from kestrel_core.protocol.arguments import Argument
from kestrel_core.protocol.errors import InvalidRequest
from kestrel_core.protocol.messages import Request
from kestrel_core.skills.arguments import spatial_inputs, takes
from kestrel_core.skills.spec import OF_OBJECTS, Language, SkillSpec

READ_COORD = Readout(Kind.COORD)
READ_SIZE = Readout(Kind.SIZE)


class PointSkill(SkillSpec):
    name = "point"
    meaning = "a point on everything that fits the words"
    arguments: tuple[Argument, ...] = (takes("object", required=True), takes("spatial_refs"))
    greedy = True
    settings = OF_OBJECTS
    answers = "`points`"
    with_size = False
    template = "point"  # of the model's config; a subclass with another name still asks by it

    def prompt(self, request: Request, language: Language) -> Prompt:
        refs = spatial_inputs(request)
        if refs and not language.config.dialog.spatial_refs:
            raise InvalidRequest(f"SPATIAL_REFS are not known to {self.name} of this model")
        template = getattr(language.config.tokenizer.templates, self.template)
        words = language.tokenizer.encode(" " + request.arguments["object"])
        return Prompt((*template.prefix, *refs, *words, *template.suffix), True)

    def reply(self, request: Request, language: Language) -> Reply:
        return ObjectsReply(request, language, self.with_size)


class DetectSkill(PointSkill):
    name = "detect"
    meaning = "boxes around everything that fits the words"
    arguments = (takes("object", required=True),)
    answers = "`objects`: boxes"
    with_size = True
    template = "detect"


class ObjectsReply:
    """Reads each object in the same order: whether there is another and its x, its y, perhaps its size."""

    def __init__(self, request: Request, language: Language, with_size: bool) -> None:
        ids, dialog = language.config.tokenizer, language.config.dialog
        self._end = ids.eos_id
        self._left = request.settings.max_objects or dialog.max_objects
        # The first decision weighs all tokens; whether later ones do is the generation's habit.
        later = Readout(Kind.OBJECT, choices=(ids.coord_id, ids.eos_id) if dialog.two_way_objects else ())
        self._first = Readout(Kind.OBJECT)
        self._round = (later, READ_COORD, READ_SIZE) if with_size else (later, READ_COORD)
        self._num_samples = 0
        self._key = "objects" if with_size else "points"
        self._x = self._y = 0.0
        self._found: list[dict[str, float]] = []

    def readout(self, ahead: int = 0) -> Readout:
        index = self._num_samples + ahead
        return self._round[index % len(self._round)] if index else self._first

    def take(self, sample: Sample) -> Outcome:
        kind = self.readout().kind
        self._num_samples += 1
        if kind is Kind.OBJECT:
            if sample.token == self._end:
                return Outcome(finish="stop")
            assert sample.coord is not None
            self._x = sample.coord
            return GO_ON
        if kind is Kind.COORD:
            assert sample.coord is not None
            self._y = sample.coord
            return GO_ON if len(self._round) == 3 else self._add({"x": self._x, "y": self._y})
        assert sample.size is not None
        width, height = sample.size
        return self._add(
            {
                "x_min": self._x - width / 2,
                "y_min": self._y - height / 2,
                "x_max": self._x + width / 2,
                "y_max": self._y + height / 2,
            }
        )

    def _add(self, found: dict[str, float]) -> Outcome:
        self._found.append(found)
        self._left -= 1
        return GO_ON if self._left else Outcome(finish="length")

    def cut(self) -> Outcome:
        return Outcome(finish="length")

    def output(self) -> dict[str, Any]:
        return {self._key: self._found}
