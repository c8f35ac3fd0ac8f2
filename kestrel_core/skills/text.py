"""Query and caption: texts, for a query also the reasoning before the answer and its grounded points."""

from typing import Any

from kestrel_core.intake.tokenizer import TextStream, Tokenizer
from kestrel_core.loop.sequence import GO_ON, Outcome, Prompt, Reply, shows
from kestrel_core.loop.step import Kind, Readout, Sample
from kestrel_core.moondream.config import TokenizerConfig
from kestrel_core.protocol.arguments import Argument
from kestrel_core.protocol.errors import InvalidRequest
from kestrel_core.protocol.messages import FinishReason, Request
from kestrel_core.skills.arguments import spatial_inputs, takes
from kestrel_core.skills.logprobs import Logprobs
from kestrel_core.skills.spec import OF_TEXT, Language, SkillSpec


class QuerySkill(SkillSpec):
    name = "query"
    meaning = "answer a question, about a picture or without one"
    arguments = (takes("question", required=True), takes("reasoning"), takes("spatial_refs"))
    image = "optional"
    streams = True
    settings = OF_TEXT
    answers = "`answer`, and `reasoning` with grounded points where asked for"

    def prompt(self, request: Request, language: Language) -> Prompt:
        ids, dialog = language.config.tokenizer, language.config.dialog
        refs = spatial_inputs(request)
        if refs and (request.image is None or not dialog.spatial_refs):
            raise InvalidRequest("SPATIAL_REFS need an IMAGE, and a model that understands them")
        if request.image is None and not dialog.text_only:
            raise InvalidRequest("IMAGE is required: this model answers no question without a picture")
        template = ids.templates.query
        if not request.arguments.get("reasoning"):
            end = template.suffix * dialog.answer_suffixes
        elif dialog.reasons:
            end = (*(template.suffix if dialog.suffix_before_thinking else ()), ids.thinking_id)
        else:
            raise InvalidRequest("REASONING is not known to this model; ask without it")
        words = language.tokenizer.encode(dialog.question_lead + request.arguments["question"])
        start = () if request.image is not None else (ids.bos_id,)
        return Prompt((*start, *template.prefix, *refs, *words, *end), request.image is not None)

    def reply(self, request: Request, language: Language) -> Reply:
        answer = TextReply(request, language, "answer")
        return ReasoningReply(request, language, answer) if request.arguments.get("reasoning") else answer


class CaptionSkill(SkillSpec):
    name = "caption"
    meaning = "describe a picture"
    arguments = (takes("length"),)
    streams = True
    settings = OF_TEXT
    answers = "`caption`"

    def prompt(self, request: Request, language: Language) -> Prompt:
        length = request.arguments.get("length") or "normal"
        return Prompt(getattr(language.config.tokenizer.templates.caption, length), True)

    def reply(self, request: Request, language: Language) -> Reply:
        return TextReply(request, language, "caption")


class TokensSkill(SkillSpec):
    """Raw prompt tokens, continued as text. They follow the image prefix, or are the whole prompt."""

    name = "tokens"
    arguments = (Argument("tokens", list, "ids to continue", required=True, max_items=1_000_000),)
    image = "optional"
    streams = True
    settings = OF_TEXT
    hidden = True

    def prompt(self, request: Request, language: Language) -> Prompt:
        tokens = request.arguments["tokens"]
        size = language.config.text.vocab_size
        if not len(tokens) or not all(isinstance(token, int) and 0 <= token < size for token in tokens):
            raise InvalidRequest(f"TOKENS must be one or more token ids from 0 to {size - 1}")
        return Prompt(tuple(tokens), request.image is not None)

    def reply(self, request: Request, language: Language) -> Reply:
        return TextReply(request, language, "text")


class TextReply:
    """Tokens up to the end token, `max_tokens`, or a stop string, which is cut off."""

    def __init__(self, request: Request, language: Language, key: str) -> None:
        ids, dialog = language.config.tokenizer, language.config.dialog
        self._key = key
        self._end = ids.eos_id
        self._left = request.settings.max_tokens or dialog.max_tokens
        self._later = Readout(Kind.TOKEN, suppressed=(ids.answer_id,) if dialog.masks_controls else ())
        self._stream = TextStream(language.tokenizer)
        self._stops = StopStrings(request.settings.stop)
        self._with_stops = bool(request.settings.stop)
        self._logprobs = Logprobs(language.tokenizer) if request.settings.logprobs else None
        self._text: list[str] = []
        self._started = False

    def readout(self, ahead: int = 0) -> Readout | None:
        if ahead >= self._left:
            return None
        return self._later if self._started or ahead else FIRST_TOKEN

    def take(self, sample: Sample) -> Outcome:
        token = sample.token
        assert token is not None
        self._started = True
        if token == self._end:
            return self._finish("stop")
        text = self._stream.feed(token)
        if self._logprobs is not None:
            self._logprobs.add(sample)
        if self._with_stops:
            text = self._stops.feed(text)
            if self._stops.will_be_met(self._stream.held):
                text += self._stops.feed(self._stream.finish())
        self._left -= 1
        if text:
            self._text.append(text)
        if self._with_stops and self._stops.met:
            return self._finish("stop", text)
        if self._left == 0:
            return self._finish("length", text)
        if not text:
            return GO_ON
        return shows(text) if self._logprobs is None else Outcome(text, logprobs=self._logprobs.shown(text))

    def cut(self) -> Outcome:
        return self._finish("length")

    def _finish(self, reason: FinishReason, text: str = "") -> Outcome:
        rest = self._stops.feed(self._stream.finish()) + self._stops.finish()
        self._text.append(rest)
        logprobs: tuple[dict[str, Any], ...] = ()
        if self._logprobs is not None:
            logprobs = self._logprobs.rest_before(text + rest) if self._stops.met else self._logprobs.rest()
        return Outcome(text, rest, finish="stop" if self._stops.met else reason, logprobs=logprobs)

    def output(self) -> dict[str, Any]:
        result: dict[str, Any] = {self._key: "".join(self._text)}
        if self._logprobs is not None:
            result["logprobs"] = self._logprobs.entries
        return result


class ReasoningReply:
    """Thinks first: text with grounded points, up to the answer token; then prompts itself for the answer."""

    def __init__(self, request: Request, language: Language, answer: TextReply) -> None:
        ids, dialog = language.config.tokenizer, language.config.dialog
        self._ids: TokenizerConfig = ids
        self._tokenizer: Tokenizer = language.tokenizer
        self._left = request.settings.max_tokens or dialog.max_tokens
        self._later = Readout(
            Kind.GROUNDED, suppressed=(ids.eos_id, ids.size_id) if dialog.masks_controls else ()
        )
        self._answer = answer
        self._answering = False
        self._started = False
        self._tokens: list[list[int]] = [[]]  # a chunk each, cut at the grounding tokens
        self._coords: list[list[float]] = [[]]
        self._stream = TextStream(language.tokenizer)
        self.num_reasoning = 0  # samples, the one that ended it among them

    def readout(self, ahead: int = 0) -> Readout | None:
        if self._answering:
            return self._answer.readout(ahead)
        if ahead >= self._left:
            return None
        return self._later if self._started or ahead else FIRST_GROUNDED

    def take(self, sample: Sample) -> Outcome:
        if self._answering:
            return self._answer.take(sample)
        token = sample.token
        assert token is not None
        self._started = True
        self.num_reasoning += 1
        if token == self._ids.answer_id:
            return self._begin_the_answer("")
        shown = ""
        if token in (self._ids.start_ground_points_id, self._ids.end_ground_id):
            shown = self._stream.finish()  # parts are decoded one by one, also in the result
            self._tokens.append([])
            self._coords.append([])
        shown += self._stream.feed(token)
        self._tokens[-1].append(token)
        if sample.coord is not None:
            self._coords[-1].append(sample.coord)
        self._left -= 1
        if not self._left:
            return self._begin_the_answer(shown, sample)
        return Outcome(reasoning=shown) if shown else GO_ON

    def cut(self) -> Outcome:
        return self._answer.cut()._replace(reasoning=self._stream.finish())

    def _begin_the_answer(self, shown: str, last: Sample | None = None) -> Outcome:
        # The last thought is fed before the suffix. An answer token is not: the suffix takes its place.
        self._answering = True
        suffix = self._ids.templates.query.suffix
        feed = suffix if last is None else (last.feed, *suffix)
        return Outcome(feed=feed, reasoning=shown + self._stream.finish())

    def output(self) -> dict[str, Any]:
        text, grounding = "", []
        for tokens, coords in zip(self._tokens, self._coords, strict=True):
            start, text = len(text), text + self._tokenizer.decode(tokens)
            points = [list(pair) for pair in zip(coords[::2], coords[1::2], strict=False)]
            if points:
                grounding.append({"start_idx": start, "end_idx": len(text), "points": points})
        return {"reasoning": {"text": text, "grounding": grounding}, **self._answer.output()}


class StopStrings:
    """Holds back text that may begin a stop string. Once a stop string is met, there is no more text.

    It is fed what the stream shows, words mostly; of several stop strings in it the one that begins first
    counts. A word may be long, so what is known of it is looked at before it is fed.
    """

    def __init__(self, stops: tuple[str, ...]) -> None:
        self._stops = stops
        self._held = ""
        self._num_searched = 0  # letters, from the first that is held, in which there is no stop string
        self.met = False

    def feed(self, text: str) -> str:
        if self.met or not text:
            return ""
        if not self._stops:
            return text
        held = self._held + text
        found = [at for at in map(held.find, self._stops) if at >= 0]
        if found:
            self.met, self._held = True, ""
            return held[: min(found)]
        end = self._begun(held, len(held))
        self._held = held[end:]
        self._num_searched = len(held) - end
        return held[:end]

    def will_be_met(self, coming: str) -> bool:
        """Whether text that begins with `coming` will meet a stop string, and where is settled by now.

        It is not settled while another one that begins before it can still become whole.
        """
        if self.met:
            return False
        known, searched = self._held + coming, self._num_searched
        starts = (known.find(stop, max(0, searched - len(stop) + 1)) for stop in self._stops)
        begin = min((at for at in starts if at >= 0), default=None)
        if begin is None:
            self._num_searched = len(known)
            return False
        return self._begun(known, begin) == begin

    def _begun(self, text: str, end: int) -> int:
        """Where the first stop string begins that `text` breaks off, or `end` if none does before that."""
        for stop in self._stops:
            at = text.find(stop[0], max(0, len(text) - len(stop) + 1), end)
            while at >= 0 and not stop.startswith(text[at:]):
                at = text.find(stop[0], at + 1, end)
            end = end if at < 0 else at
        return end

    def finish(self) -> str:
        rest, self._held = self._held, ""
        return rest


FIRST_TOKEN = Readout(Kind.TOKEN)  # the reference suppresses nothing in the first step
FIRST_GROUNDED = Readout(Kind.GROUNDED)
