"""One way to ask: the calls that an engine and a server's client have in common, over one `submit(Request)`.

    result = await engine.query(image, "How many?", max_tokens=64)
    async with await engine.caption(image, stream=True) as stream:
        async for chunk in stream:
            print(chunk.text, end="")
    await engine.ask("count", image, object="car")        # any skill, your own among them

Settings of the answer may be keywords or stand in `settings`. Streams are async context managers: leaving
one, or leaving its `async for`, cancels it.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from types import TracebackType
from typing import Any, Generic, Literal, Self, TypedDict, TypeVar, Unpack, cast, overload

from kestrel_core.protocol.about import ABOUT, About, about_of
from kestrel_core.protocol.errors import InvalidRequest
from kestrel_core.protocol.fields import BY_NAME, OLD_NAMES, PARAMETERS, SETTINGS
from kestrel_core.protocol.limits import OF_THE_SERVER
from kestrel_core.protocol.messages import Chunk, EngineResult, Request, parse_settings, parse_traceparent
from kestrel_core.protocol.names import nearest, shown
from kestrel_core.protocol.results import Answer, Caption, Detection, Points, Segments

SpatialRefs = Sequence[Sequence[float]]
Length = Literal["short", "normal", "long"]
R = TypeVar("R", bound=EngineResult)


class Options(TypedDict, total=False):
    """Keywords of every call. None, like leaving one out, is the default."""

    temperature: float | None
    top_p: float | None
    top_k: int | None
    max_tokens: int | None
    max_objects: int | None
    adapter: str | None
    seed: int | None
    stop: str | Sequence[str] | None
    logprobs: int | None
    settings: Mapping[str, Any] | None
    priority: int | None  # lower is served first
    request_id: str | None
    timeout_s: float | None
    cache_salt: str | None  # requests of different salts share nothing cached
    traceparent: str | None  # the caller's span, in W3C's form


class RefOptions(Options, total=False):
    spatial_refs: SpatialRefs | None


class QueryOptions(RefOptions, total=False):
    reasoning: bool | None


OF_A_REQUEST = ("settings", "priority", "request_id", "timeout_s", "cache_salt", "traceparent")


def make_request(
    skill: str,
    image: Any,
    options: Mapping[str, Any],
    *,
    stream: bool = False,
    arguments: Mapping[str, Any] | None = None,
    takes: Sequence[str] | None = None,
) -> Request:
    """A request from the keywords of a call.

    A keyword that is neither a setting nor one of `OF_A_REQUEST` is an argument of the skill. `takes` names
    the arguments of a skill that is known here; without it, the engine or the server checks them.
    """
    given = {**(arguments or {}), **options}
    settings = given.pop("settings", None) or {}
    if not isinstance(settings, Mapping):
        raise InvalidRequest(f"settings are a {type(settings).__name__}; they must be names and values")
    settings = dict(settings)
    for name in SETTINGS.keys() & given.keys():
        if given[name] is not None and settings.get(name) is not None:
            raise InvalidRequest(f"{name} is given twice, as a keyword and in settings")
        if given[name] is not None:
            settings[name] = given[name]
        del given[name]
    priority, request_id = given.pop("priority", None), given.pop("request_id", None)
    timeout_s, cache_salt = given.pop("timeout_s", None), given.pop("cache_salt", None)
    traceparent = given.pop("traceparent", None)
    own = {name: value for name, value in given.items() if value is not None}
    for name in own:
        if name in OLD_NAMES:
            raise InvalidRequest(f"{name} is called {OLD_NAMES[name]} now")
        if takes is not None and name not in takes:
            raise InvalidRequest(
                f"{skill} takes no {shown(name)}{nearest(name, (*takes, *SETTINGS, *OF_A_REQUEST))}"
            )
    if not isinstance(stream, bool):
        raise InvalidRequest(f"stream is {shown(repr(stream))}; it must be true or false")
    return Request(
        skill=skill,
        arguments=own,
        image=image,
        settings=parse_settings(settings, OF_THE_SERVER),
        request_id="" if request_id is None else str(request_id),
        stream=stream,
        priority=0 if priority is None else BY_NAME["PRIORITY"].argument.check(priority),
        timeout_s=None if timeout_s is None else check_timeout(timeout_s),
        cache_salt="" if cache_salt is None else PARAMETERS["cache_salt"].check(cache_salt),
        traceparent=parse_traceparent(traceparent),
    )


def make_call(
    skill: str,
    image: Any,
    arguments: Mapping[str, Any],
    options: Mapping[str, Any],
    stream: bool = False,
    takes: Sequence[str] = (),
) -> Request:
    """The request of a method such as `query`, which knows what its skill takes."""
    given = dict(options)
    stream = given.pop("stream", stream)  # detect and its like have no `stream`: their spec refuses it
    known = (*arguments, *takes)
    return make_request(skill, image, given, stream=stream, arguments=arguments, takes=known)


def check_timeout(timeout_s: Any) -> float:
    is_number = isinstance(timeout_s, int | float) and not isinstance(timeout_s, bool)
    if not is_number or not 0 < timeout_s < float("inf"):
        given = shown(repr(timeout_s))
        raise InvalidRequest(f"timeout_s is {given}; it must be a number of seconds, more than 0")
    return float(timeout_s)


class AnswerStream(ABC, Generic[R]):
    """An answer while it is given: iterate for chunks, `await result()` for the whole."""

    @abstractmethod
    def cancel(self) -> None:
        """Free its pages and slot within one step. `result` then gives what was said so far, or raises."""

    @abstractmethod
    async def result(self) -> R:
        """The whole answer; waits for it, whether or not the chunks were read."""

    @abstractmethod
    async def next_chunk(self) -> Chunk | None:
        """The next chunk; None after the last."""

    @property
    @abstractmethod
    def is_done(self) -> bool: ...

    async def __aiter__(self) -> AsyncGenerator[Chunk, None]:
        """Leaving the loop before its end cancels the request."""
        is_over = False
        try:
            while (chunk := await self.next_chunk()) is not None:
                yield chunk
            is_over = True
        finally:
            if not is_over:
                self.cancel()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.is_done:
            self.cancel()


class AsyncCalls(ABC):
    """The calls of `InferenceEngine` and of `kestrel_client.AsyncClient`."""

    @abstractmethod
    async def open(self, request: Request) -> AnswerStream[Any]:
        """Send a request; its answer comes through the stream, in pieces if `request.stream`."""

    async def submit(
        self,
        skill: Request | str = "tokens",
        image: Any = None,
        arguments: Mapping[str, Any] | None = None,
        *,
        stream: bool = False,
        **options: Any,
    ) -> Any:
        """A request as it is, or a skill by name; `submit(tokens=[...])` continues raw prompt tokens.

        Returns the result, or the stream if the request asks for one.
        """
        if isinstance(skill, Request):
            request = skill
        else:
            request = make_request(skill, image, options, stream=stream, arguments=arguments)
        answers = await self.open(request)
        if request.stream:
            return answers
        async with answers:  # so that the request is cancelled if the waiting task is
            return await answers.result()

    @overload
    async def query(
        self,
        image: Any = ...,
        question: str | None = ...,
        *,
        stream: Literal[True],
        **options: Unpack[QueryOptions],
    ) -> AnswerStream[Answer]: ...
    @overload
    async def query(
        self,
        image: Any = ...,
        question: str | None = ...,
        *,
        stream: Literal[False] = ...,
        **options: Unpack[QueryOptions],
    ) -> Answer: ...
    async def query(
        self,
        image: Any = None,
        question: str | None = None,
        *,
        stream: bool = False,
        **options: Unpack[QueryOptions],
    ) -> Answer | AnswerStream[Answer]:
        """Answer a question, about a picture or without one."""
        return cast(Answer, await self._call("query", image, {"question": question}, options, stream, QUERY))

    @overload
    async def caption(
        self, image: Any, length: Length = ..., *, stream: Literal[True], **options: Unpack[Options]
    ) -> AnswerStream[Caption]: ...
    @overload
    async def caption(
        self, image: Any, length: Length = ..., *, stream: Literal[False] = ..., **options: Unpack[Options]
    ) -> Caption: ...
    async def caption(
        self, image: Any, length: Length = "normal", *, stream: bool = False, **options: Unpack[Options]
    ) -> Caption | AnswerStream[Caption]:
        """Describe a picture: `short`, `normal` or `long`."""
        return cast(Caption, await self._call("caption", image, {"length": length}, options, stream))

    async def detect(self, image: Any, object: str, **options: Unpack[Options]) -> Detection:
        """Boxes around everything in the picture that fits the words."""
        return cast(Detection, await self._call("detect", image, {"object": object}, options))

    async def point(self, image: Any, object: str, **options: Unpack[RefOptions]) -> Points:
        """A point on everything in the picture that fits the words."""
        return cast(Points, await self._call("point", image, {"object": object}, options, takes=REFS))

    async def segment(self, image: Any, object: str, **options: Unpack[RefOptions]) -> Segments:
        """Outlines of what fits the words; `UnsupportedSkill` where the model has no such skill."""
        return cast(Segments, await self._call("segment", image, {"object": object}, options, takes=REFS))

    async def ask(self, skill: str, image: Any = None, *, stream: bool = False, **arguments: Any) -> Any:
        """Any skill by its name. Keywords that are not settings are arguments, which the skill checks."""
        return await self.submit(make_request(skill, image, arguments, stream=stream))

    async def about(self) -> About:
        """Which model answers, and what its skills take. It does not wait for the model."""
        return about_of(await self.submit(Request(ABOUT)))

    async def _call(
        self,
        skill: str,
        image: Any,
        arguments: Mapping[str, Any],
        options: Mapping[str, Any],
        stream: bool = False,
        takes: Sequence[str] = (),
    ) -> Any:
        return await self.submit(make_call(skill, image, arguments, options, stream, takes))


REFS = ("spatial_refs",)
QUERY = ("spatial_refs", "reasoning")
