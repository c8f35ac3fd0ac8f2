"""The step loop: one thread that turns scheduler and runtime.

Any thread may submit, cancel and close. What becomes of a request is told to its sink, in the loop's thread:
chunks, then exactly one `Finished` or error. A sink must not block.
"""

import heapq
import logging
import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import count, groupby
from typing import Any

from kestrel_core.loop.inbox import Door, Sink, Ticket
from kestrel_core.loop.metrics import Metrics
from kestrel_core.loop.sequence import FinishReason, Outcome, Prompt, Sequence
from kestrel_core.loop.step import PreparedImage, Runtime, Sample, Sampling, StepInFlight, StepPlan
from kestrel_core.protocol.errors import (
    Cancelled,
    EngineFailed,
    KestrelError,
    Overloaded,
    PromptTooLong,
    UnknownAdapter,
)
from kestrel_core.protocol.messages import Chunk, EngineResult, Event, Finished, Request
from kestrel_core.scheduler.scheduler import Scheduler, Update
from kestrel_core.skills.spec import Language, SkillRegistry, SkillSpec

log = logging.getLogger("kestrel")


@dataclass(frozen=True, slots=True)
class QueueLimits:
    max_count: int
    max_bytes: int
    max_context: int
    priority_s: float
    default_timeout_s: float | None


class StepLoop:
    def __init__(
        self,
        runtime: Runtime,
        scheduler: Scheduler,
        skills: SkillRegistry,
        language: Language,
        prepare: Callable[[object], PreparedImage],
        limits: QueueLimits,
        metrics: Metrics,
        image_workers: int = 2,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.runtime = runtime
        self.scheduler = scheduler
        self.metrics = metrics
        self._skills = skills
        self._language = language
        self._prepare = prepare
        self._limits = limits
        self._clock = clock
        self._tickets: dict[Sequence, Ticket] = {}
        self._pending: StepInFlight | None = None
        self._deadlines: list[tuple[float, int, Ticket]] = []
        self._ties = count()
        self._workers = ThreadPoolExecutor(image_workers, thread_name_prefix="kestrel-image")
        self._thread: threading.Thread | None = None
        self._door = Door(limits.max_count, limits.max_bytes)

    # From any thread

    def submit(self, request: Request, sink: Sink) -> Ticket:
        """Take a request in. Raises what is wrong with it, or `Overloaded`; then nothing was taken."""
        skill = self._skills[request.skill]
        if request.settings.adapter is not None:
            raise UnknownAdapter(f'adapter "{request.settings.adapter}" is not known to this server')
        prompt = self._prompt(skill, request)
        ticket = Ticket(request, sink, skill, prompt, _num_bytes(request.image), self._clock())
        self._door.enter(ticket)
        timeout_s = request.timeout_s if request.timeout_s is not None else self._limits.default_timeout_s
        if timeout_s is not None:
            self._door.call(lambda: self._set_deadline(ticket, ticket.arrived_s + timeout_s))
        if prompt.with_image:
            self._workers.submit(self._prepare_image, ticket)
        else:
            self._door.call(lambda: self._arrive(ticket, None))
        return ticket

    def cancel(self, ticket: Ticket) -> None:
        """The caller has gone, or wants no more: it ends with what it has."""
        self._door.call(lambda: self._cancel(ticket))

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="kestrel-steps", daemon=True)
        self._thread.start()

    def close(self, drain: bool = True) -> None:
        """Refuse what comes from now on, finish (or drop) what is there, stop. May be called twice."""
        self._door.close()
        if not drain:
            self._door.call(
                lambda: self._fail_all(Overloaded("the server is shutting down; try another one"))
            )
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self._workers.shutdown()

    @property
    def healthy(self) -> bool:
        return not self._door.is_broken

    @property
    def num_open(self) -> int:
        """Requests taken in and not yet ended."""
        return self._door.num_inside

    @property
    def num_queued(self) -> int:
        """Of these, the ones that have not begun: pictures being decoded among them."""
        return self._door.num_queued

    @property
    def queued_bytes(self) -> int:
        return self._door.queued_bytes

    # The loop

    def _run(self) -> None:
        while self._pending is not None or not self._door.is_deserted:
            try:
                self.step(wait=True)
            except Exception as error:  # nothing is known of the state any more
                log.exception("the engine's loop failed")
                self._door.break_down()
                self._pending = None
                self._fail_all(
                    EngineFailed(f"the engine failed ({type(error).__name__}) and takes no requests")
                )
                break
        self.runtime.close()

    def step(self, wait: bool = False) -> None:
        """Launch the next step, then settle the one before it while the device is busy."""
        self._admit_arrivals(wait and self._pending is None and not self._tickets)
        plan = self.scheduler.plan()
        launched = self._launch(plan) if plan is not None else None
        if self.runtime.overlaps:
            launched, self._pending = self._pending, launched
        if launched is not None:
            self._publish(self.scheduler.commit(launched.collect()))

    def run_until_idle(self) -> None:
        """Turn the loop here and now, for callers without a thread: tests and benchmarks."""
        while self._tickets or self._door.has_calls or self._pending is not None:
            self.step()

    def _admit_arrivals(self, wait: bool) -> None:
        if wait:
            self._door.wait(self._deadlines[0][0] - self._clock() if self._deadlines else None)
        for call in self._door.calls():
            call()
        while self._deadlines and self._deadlines[0][0] <= self._clock():
            self._expire(heapq.heappop(self._deadlines)[2])

    def _launch(self, plan: StepPlan) -> StepInFlight:
        self.metrics.steps += 1
        self._note_starts()
        try:
            return self.runtime.launch(plan)
        except Exception:
            log.exception("a step failed; its sequences are tried one by one")
            return self._launch_one_by_one(plan)

    def _launch_one_by_one(self, plan: StepPlan) -> "Collected":
        """Find whose fault it was.

        A span that is computed again writes the same to the same cells. But the launch that failed may have
        replaced what each slot sampled last, so the step before is collected first, and every input is given.
        """
        before: Mapping[int, Sample] = {}
        if self._pending is not None:
            before = self._pending.collect()
            self._pending = Collected(before)
        samples: dict[int, Sample] = {}
        by_slot = {sequence.slot: sequence for sequence in self.scheduler.running}
        for slot, spans in groupby(plan.spans, key=lambda span: span.slot):
            given = [s._replace(inputs=(before[slot].feed,)) if s.feeds_last_sample else s for s in spans]
            try:
                samples |= self.runtime.launch(StepPlan(given)).collect()
            except KestrelError as error:
                self._publish([self.scheduler.fail(by_slot[slot], error)])
            except Exception as error:
                failed = EngineFailed(f"computing this request failed ({type(error).__name__})")
                self._publish([self.scheduler.fail(by_slot[slot], failed)])
        return Collected(samples)

    # A request's way in

    def _prompt(self, skill: SkillSpec, request: Request) -> Prompt:
        try:
            prompt = skill.prompt(request, self._language)
        except KestrelError:
            raise
        except Exception as error:  # anybody's code
            raise EngineFailed(
                f"skill {skill.name} could not make a prompt ({type(error).__name__})"
            ) from error
        if not prompt.inputs:
            raise EngineFailed(f"skill {skill.name} made an empty prompt; there is nothing to answer")
        image = self._language.config.image_prefix_length if prompt.with_image else 0
        length = image + len(prompt.inputs)
        if length >= self._limits.max_context:
            raise PromptTooLong(
                f"prompt needs {length:,} positions ({image:,} image + {len(prompt.inputs):,} text) and "
                f"max_context is {self._limits.max_context:,}; "
                "shorten the text or serve with a larger max_context"
            )
        return prompt

    def _prepare_image(self, ticket: Ticket) -> None:
        """In a worker thread."""
        if ticket.done:
            return
        try:
            image = self._prepare(ticket.request.image)
        except KestrelError as error:
            refused = error
            self._door.call(lambda: self._end(ticket, refused))
        except Exception as error:
            failed = EngineFailed(f"the picture could not be prepared ({type(error).__name__})")
            self._door.call(lambda: self._end(ticket, failed))
        else:
            self._door.call(lambda: self._arrive(ticket, image))

    def _arrive(self, ticket: Ticket, image: PreparedImage | None) -> None:
        if ticket.done:
            return
        request = ticket.request
        try:
            reply = ticket.skill.reply(request, self._language)
        except KestrelError as error:
            return self._end(ticket, error)
        except Exception as error:
            kind = type(error).__name__
            return self._end(
                ticket, EngineFailed(f"skill {ticket.skill.name} could not begin its reply ({kind})")
            )
        ticket.sequence = Sequence(
            request_id=request.request_id,
            reply=reply,
            inputs=list(ticket.prompt.inputs),
            root=(request.settings.adapter, image.key if image else None),
            image=image,
            image_length=self._language.config.image_prefix_length if image else 0,
            sampling=self._sampling(ticket),
            order=ticket.arrived_s + request.priority * self._limits.priority_s,
        )
        self._tickets[ticket.sequence] = ticket
        self.scheduler.admit(ticket.sequence)

    def _sampling(self, ticket: Ticket) -> Sampling:
        settings, dialog = ticket.request.settings, self._language.config.dialog
        if ticket.skill.greedy:
            return Sampling(logprobs=settings.logprobs)
        return Sampling(
            temperature=dialog.temperature if settings.temperature is None else settings.temperature,
            top_p=dialog.top_p if settings.top_p is None else settings.top_p,
            top_k=settings.top_k or 0,
            seed=random.getrandbits(63) if settings.seed is None else settings.seed,
            logprobs=settings.logprobs,
        )

    # And out again

    def _note_starts(self) -> None:
        now = self._clock()
        for sequence in self.scheduler.take_started():
            ticket = self._tickets[sequence]
            if ticket.queued:
                self._door.begin(ticket)
                ticket.started_s = now
                hit = sequence.cached_tokens > 0
                self.metrics.prefix_hits += hit
                self.metrics.prefix_misses += not hit
                self.metrics.prompt_tokens += sequence.length
                self.metrics.cached_tokens += sequence.cached_tokens
                self.metrics.queue_s.observe(now - ticket.arrived_s)

    def _publish(self, updates: list[Update]) -> None:
        now, tickets, metrics = self._clock(), self._tickets, self.metrics
        waited: defaultdict[float, int] = defaultdict(int)  # almost all of a step since the same moment
        ended: list[tuple[Ticket, Outcome, FinishReason]] = []
        for sequence, outcome, error in updates:
            ticket = tickets[sequence]
            if error is not None:
                self._end(ticket, error)
                continue
            if ticket.first_s:
                waited[ticket.last_s] += 1
            else:
                ticket.first_s = now
                metrics.output_tokens += 1
                metrics.ttft_s.observe(now - ticket.arrived_s)
            ticket.last_s = now
            text, _, _, finish = outcome
            if finish is not None:
                ended.append((ticket, outcome, finish))
            elif text and ticket.request.stream:
                self._tell(ticket, Chunk(text, sequence.num_taken))
        for last_s, num_tokens in waited.items():
            metrics.output_tokens += num_tokens
            metrics.inter_token_s.observe(now - last_s, num_tokens)
        for ticket, outcome, reason in ended:  # whoever hears of the end finds it counted
            self._end(ticket, self._finished(ticket, outcome, reason))

    def _finished(self, ticket: Ticket, outcome: Outcome | None, reason: FinishReason) -> Event:
        """The result, or an error where the skill fails to give one. Without an outcome it is cut here."""
        sequence, taken = ticket.sequence, 0
        output: dict[str, Any] = {}
        if sequence is not None:
            try:
                outcome = outcome or sequence.reply.cut()
                output, taken = sequence.reply.output(), sequence.num_taken
            except Exception as error:
                kind = type(error).__name__
                return EngineFailed(f"skill {ticket.skill.name} could not give its result ({kind})")
        rest = Chunk(outcome.text + outcome.rest if outcome else "", taken)
        image = self._language.config.image_prefix_length if ticket.prompt.with_image else 0
        usage = ticket.usage(self._clock(), image)
        return Finished(EngineResult(ticket.request.request_id, reason, output, usage), rest)

    def _cancel(self, ticket: Ticket) -> None:
        if not ticket.done:
            self._end(ticket, self._finished(ticket, None, "cancelled"))

    def _set_deadline(self, ticket: Ticket, at_s: float) -> None:
        heapq.heappush(self._deadlines, (at_s, next(self._ties), ticket))

    def _expire(self, ticket: Ticket) -> None:
        if not ticket.done:
            state = "waiting" if ticket.queued else "being answered"
            self._end(ticket, Cancelled(f"the request's deadline passed while it was {state}"))

    def _fail_all(self, error: KestrelError) -> None:
        for ticket in self._door.inside():
            self._end(ticket, error)

    def _end(self, ticket: Ticket, event: Event) -> None:
        """Its one end, whatever it is and wherever the request stands."""
        if ticket.done:
            return
        sequence = ticket.sequence
        if sequence is not None and not sequence.ended and not self._door.is_broken:
            self.scheduler.end(sequence)  # first: should it raise, the request still ends, with all others
        ticket.done = True
        if sequence is not None:
            del self._tickets[sequence]
        skill = ticket.skill.name
        outcome = event.result.finish_reason if isinstance(event, Finished) else type(event).__name__
        self.metrics.requests[skill, outcome] += 1
        self.metrics.request_s[skill].observe(self._clock() - ticket.arrived_s)
        self._door.leave(ticket)
        if len(self._deadlines) > 2 * self._door.num_inside + 64:  # mostly of requests that have ended
            self._deadlines = [entry for entry in self._deadlines if not entry[2].done]
            heapq.heapify(self._deadlines)
        # Callers and deadlines may hold the ticket for long, but need not hold the picture.
        ticket.request, ticket.sequence = replace(ticket.request, image=None), None
        self._tell(ticket, event)

    def _tell(self, ticket: Ticket, event: Event) -> None:
        try:
            ticket.sink(event)
        except Exception:  # the listener's trouble must not become the others'
            log.exception("the sink of request %s failed", ticket.request.request_id)


@dataclass(frozen=True, slots=True)
class Collected:
    samples: Mapping[int, Sample]

    def collect(self) -> Mapping[int, Sample]:
        return self.samples


def _num_bytes(image: object) -> int:
    if isinstance(image, bytes | bytearray | memoryview):
        return len(image)
    size = getattr(image, "nbytes", 0)
    return size if isinstance(size, int) else 0
