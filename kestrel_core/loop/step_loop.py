"""The step loop: one thread that runs scheduler and runtime, step by step.

Any thread may submit, cancel and close. A request's sink is told in the loop's thread what becomes of it: any
number of chunks, then exactly one `Finished` or error. A sink must not block.
"""

import atexit
import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kestrel_core.intake.images import source_bytes
from kestrel_core.loop.adapters import Adapters, no_adapters
from kestrel_core.loop.deadlines import Deadlines
from kestrel_core.loop.heartbeat import Heartbeat
from kestrel_core.loop.inbox import Inbox, PreparedRequest, Sink, Ticket
from kestrel_core.loop.late_captures import LateCaptures
from kestrel_core.loop.limits import QueueLimits
from kestrel_core.loop.metrics import Metrics
from kestrel_core.loop.one_by_one import Collected, launch_one_by_one
from kestrel_core.loop.preparation import Preparation, PrepareImage, Workers, make_sequence
from kestrel_core.loop.sequence import GO_ON, Outcome, Sequence
from kestrel_core.loop.step import Adapter, Runtime, StepInFlight, StepPlan
from kestrel_core.protocol.errors import DeadlinePassed, EngineFailed, KestrelError, ShuttingDown, caused
from kestrel_core.protocol.messages import Chunk, EngineResult, Event, Finished, FinishReason, Request
from kestrel_core.protocol.names import shown
from kestrel_core.scheduler.scheduler import Scheduler, Update
from kestrel_core.skills.registry import SkillRegistry
from kestrel_core.skills.spec import Language

log = logging.getLogger("kestrel")
new_chunk = tuple.__new__  # of most words there is one, and `Chunk(...)` takes half as long again


class StepLoop:
    def __init__(
        self,
        runtime: Runtime,
        scheduler: Scheduler,
        skills: SkillRegistry,
        language: Language,
        prepare_image: PrepareImage,
        workers: Workers,
        limits: QueueLimits,
        metrics: Metrics,
        clock: Callable[[], float] = time.monotonic,
        adapters: Adapters | None = None,
        heartbeat: Heartbeat | None = None,
    ) -> None:
        """Without `adapters` every adapter is unknown; without a `heartbeat` a step may take for ever."""
        self.runtime = runtime
        self.scheduler = scheduler
        self.metrics = metrics
        self.heartbeat = heartbeat or Heartbeat()
        self._skills = skills
        self._language = language
        self._limits = limits
        self._clock = clock
        self._adapters = adapters
        self._inbox = Inbox(limits.max_count, limits.max_bytes)
        self._preparation = Preparation(
            language,
            prepare_image,
            workers,
            limits.max_context,
            limits.max_prepared_bytes,
            scheduler.prefix_cache.holds_image,
            self._pass_on,
            clock,
            limits.max_costly,
        )
        self._tickets: dict[Sequence, Ticket] = {}
        self._pending: StepInFlight | None = None
        self._is_idle = True  # nothing is computed, and nothing can be before something arrives
        self._deadlines = Deadlines()
        self._late = LateCaptures(runtime, clock)
        self._thread: threading.Thread | None = None
        self._stopped = False

    # From any thread

    def submit(self, request: Request, sink: Sink) -> Ticket:
        """Take a request in, or raise `Overloaded` or what is seen at once; the sink is told the rest."""
        skill = self._skills.check(request)
        request = self._skills.with_defaults(request, self._language)
        name = request.settings.adapter
        if name is not None and self._adapters is None:
            raise no_adapters(name)
        now = self._clock()
        order = now + request.priority * self._limits.priority_s
        salt = "" if self._limits.share_pictures else request.cache_salt
        ticket = Ticket(request, sink, skill, source_bytes(request.image), now, order, salt)
        self._inbox.add(ticket)
        timeout_s = request.timeout_s if request.timeout_s is not None else self._limits.default_timeout_s
        if timeout_s is not None:
            self._inbox.call(lambda: self._deadlines.add(now + timeout_s, ticket))
        if name is not None and self._adapters is not None:
            self._adapters.find(ticket, name, self._go_on_with)
        else:
            self._preparation.start(ticket)
        return ticket

    def cancel(self, ticket: Ticket) -> None:
        """End a request with what it has said so far, because its caller has gone or wants no more."""
        self._inbox.call(lambda: self._cancel(ticket))

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="kestrel-steps", daemon=True)
        self._thread.start()
        atexit.register(self.close, False)  # coming back from torch while Python ends would abort the process

    def close(self, drain: bool = True) -> None:
        """Refuse new requests, finish (or drop) the open ones, stop. May be called more than once."""
        self._inbox.close()
        if not drain:
            self._inbox.call(self._drop_all)
        if self._thread is None:
            self._drop_all()  # the loop does not run
            self._stop()
        elif self._thread is not threading.current_thread():
            self._thread.join()

    @property
    def healthy(self) -> bool:
        return not self._inbox.is_broken

    @property
    def num_open(self) -> int:
        """Requests that were taken in and have not ended."""
        return self._inbox.num_open

    @property
    def num_queued(self) -> int:
        """Requests that have not begun, those that are being prepared among them."""
        return self._inbox.num_queued

    @property
    def queued_bytes(self) -> int:
        """Bytes of the pictures of these requests, as they came in."""
        return self._inbox.queued_bytes

    @property
    def prepared_bytes(self) -> int:
        """Bytes of the decoded pictures of these requests."""
        return self._preparation.held_bytes

    @property
    def num_waiting_for_adapters(self) -> int:
        """Requests whose adapter is being looked for, or is not on the device."""
        tickets = self._inbox.open_tickets()
        finding = sum(t.adapter is None and t.request.settings.adapter is not None for t in tickets)
        return finding + self.scheduler.num_waiting_for_adapters

    # The loop

    def _run(self) -> None:
        while self._pending is not None or not self._inbox.is_drained:
            self.heartbeat.begin()
            try:
                self.step(wait=True)
            except Exception as error:  # the state of the engine is unknown now
                log.exception("the engine's loop failed")
                self._inbox.mark_broken()
                self._pending = None
                self._fail_all(
                    EngineFailed(f"the engine failed ({type(error).__name__}) and takes no requests")
                )
                break
        self.heartbeat.rest()
        self._stop()

    def _stop(self) -> None:
        """When no request is open any more, and none will be."""
        if not self._stopped:
            self._stopped = True
            atexit.unregister(self.close)
            if self._adapters is not None:
                self._adapters.shut_down()
            self._preparation.shut_down()
            self.runtime.close()

    def step(self, wait: bool = False) -> None:
        """Launch the next step, then settle the one before it while the device is busy."""
        self._admit_arrivals(wait and self._is_idle)
        plan = self.scheduler.plan()
        launched = self._launch(plan) if plan is not None else None
        self._begin_loads()
        if self.runtime.overlaps:
            launched, self._pending = self._pending, launched
        self._is_idle = plan is None and launched is None and not self.scheduler.num_running
        if launched is not None:
            self._publish(self.scheduler.commit(launched.collect()))

    def run_until_idle(self) -> None:
        """Run steps in the caller's thread: for tests, which start no other."""
        while self._tickets or self._inbox.has_calls or self._pending is not None:
            self.step()

    def _admit_arrivals(self, wait: bool) -> None:
        if not wait:
            self._late.between_steps()
        else:
            wait_s = self._late.while_idle(self._inbox.num_open, self._deadlines.wait_s(self._clock()))
            self.heartbeat.rest()
            self._inbox.wait(wait_s)
            self.heartbeat.begin()
        for call in self._inbox.take_calls():
            call()
        for ticket in self._deadlines.take_passed(self._clock()):
            self._expire(ticket)

    def _launch(self, plan: StepPlan) -> StepInFlight:
        self.metrics.steps += 1
        self._note_starts()
        try:
            return self.runtime.launch(plan)
        except Exception:
            log.exception("a step failed; its sequences are tried one by one")
            return self._launch_one_by_one(plan)

    def _launch_one_by_one(self, plan: StepPlan) -> Collected:
        self._pending, launched, errors = launch_one_by_one(self.runtime, plan, self._pending)
        by_slot = {sequence.slot: sequence for sequence in self.scheduler.running}
        self._publish([self.scheduler.fail(by_slot[slot], error) for slot, error in errors.items()])
        return launched

    # A request's way in

    def _go_on_with(self, ticket: Ticket, found: Adapter | KestrelError) -> None:
        """In any thread."""
        if isinstance(found, KestrelError):
            self._pass_on(ticket, found)
        elif not ticket.done:
            ticket.adapter = found
            self._preparation.start(ticket)

    def _pass_on(self, ticket: Ticket, prepared: PreparedRequest | KestrelError) -> None:
        """In a worker's thread."""
        self._inbox.call(lambda: self._arrive(ticket, prepared))

    def _arrive(self, ticket: Ticket, prepared: PreparedRequest | KestrelError) -> None:
        if ticket.done:
            return
        if isinstance(prepared, KestrelError):
            return self._end(ticket, prepared)
        try:
            sequence = make_sequence(ticket, prepared, self._language)
        except KestrelError as error:
            return self._end(ticket, error)
        ticket.prepared, ticket.sequence = prepared, sequence
        ticket.image_began_s, ticket.image_ended_s = prepared.image_began_s, prepared.image_ended_s
        self._tickets[sequence] = ticket
        self.scheduler.admit(sequence)

    # Adapters

    def _begin_loads(self) -> None:
        for index, adapter in self.scheduler.take_loads():
            assert self._adapters is not None
            self._adapters.load(adapter, self.runtime.adapter_loader, index, self._note_load)

    def _note_load(self, adapter: Adapter, took_s: float, error: KestrelError | None) -> None:
        """In any thread."""
        self._inbox.call(lambda: self._end_load(adapter, took_s, error))

    def _end_load(self, adapter: Adapter, took_s: float, error: KestrelError | None) -> None:
        if error is not None:
            self.metrics.adapter_load_failures += 1
            return self._publish(self.scheduler.adapter_failed(adapter.identity, error))
        self.metrics.adapter_loads += 1
        self.metrics.adapter_load_s.observe(took_s)
        self.scheduler.adapter_loaded(adapter.identity)

    # A request's way out

    def _note_starts(self) -> None:
        now = self._clock()
        for sequence in self.scheduler.take_started():
            ticket = self._tickets[sequence]
            if ticket.queued:
                self._inbox.begin(ticket)
                self._preparation.release(ticket)
                ticket.started_s = now
                hit = sequence.cached_tokens > 0
                self.metrics.prefix_hits += hit
                self.metrics.prefix_misses += not hit
                self.metrics.prompt_tokens += sequence.length
                self.metrics.cached_tokens += sequence.cached_tokens
                self.metrics.queue_s.observe(now - ticket.arrived_s)

    def _publish(self, updates: list[Update]) -> None:
        now, tickets, metrics = self._clock(), self._tickets, self.metrics
        before_s = math.inf  # when the first of the tokens before these came: in most steps all at one moment
        ended: list[tuple[Ticket, Outcome, FinishReason]] = []
        num_failed = 0
        for sequence, outcome, error in updates:
            ticket = tickets[sequence]
            if error is not None:
                self._end(ticket, error)
                num_failed += 1
                continue
            if not ticket.first_s:
                ticket.first_s = now
                if sequence.image is not None and sequence.cached_tokens < sequence.image_length:
                    ticket.vision_s = self.runtime.vision_s(sequence.image)
                metrics.ttft_s.observe(now - ticket.arrived_s)
            elif ticket.last_s < before_s:
                before_s = ticket.last_s
            ticket.last_s = now
            if outcome is GO_ON:
                continue
            text, _, _, finish, reasoning, logprobs = outcome
            if reasoning:
                self._tell_reasoning(ticket, reasoning)
            if finish is not None:
                ended.append((ticket, outcome, finish))
            elif text and ticket.request.stream:
                self._tell(ticket, new_chunk(Chunk, (text, sequence.num_taken, "text", logprobs)))
        metrics.output_tokens += len(updates) - num_failed
        if before_s < math.inf:
            metrics.inter_token_s.observe(now - before_s)
        for ticket, outcome, reason in ended:  # last, so that an answer is counted before its end is told
            self._end(ticket, self._finished(ticket, outcome, reason))

    def _finished(
        self, ticket: Ticket, outcome: Outcome | None, reason: FinishReason
    ) -> Finished | KestrelError:
        """The result, or an error if the skill fails to give one. Without an outcome the answer is cut."""
        sequence, rest = ticket.sequence, Chunk("", 0)
        output: dict[str, Any] = {}
        if sequence is not None:
            try:
                if outcome is None:
                    outcome = sequence.reply.cut()
                    self._tell_reasoning(ticket, outcome.reasoning)
                output = sequence.reply.output()
                rest = Chunk(outcome.text + outcome.rest, sequence.num_taken, "text", outcome.logprobs)
            except Exception as error:
                name, kind = ticket.skill.name, type(error).__name__
                return caused(EngineFailed(f"skill {name} could not give its result ({kind})"), error)
        usage = ticket.usage(self._clock())
        return Finished(EngineResult(ticket.request.request_id, reason, output, usage), rest)

    def _cancel(self, ticket: Ticket) -> None:
        if not ticket.done:
            self._end(ticket, self._finished(ticket, None, "cancelled"))

    def _expire(self, ticket: Ticket) -> None:
        if not ticket.done:
            state = "waiting" if ticket.queued else "being answered"
            self._end(ticket, DeadlinePassed(f"the request's deadline passed while it was {state}"))

    def _drop_all(self) -> None:
        self._fail_all(ShuttingDown("the server is shutting down; try another one"))

    def _fail_all(self, error: KestrelError) -> None:
        for ticket in self._inbox.open_tickets():
            self._end(ticket, error)

    def _end(self, ticket: Ticket, event: Finished | KestrelError) -> None:
        """End a request with its last event, whatever state it is in. The second end of one does nothing."""
        if ticket.done:
            return
        sequence = ticket.sequence
        if sequence is not None and not sequence.ended and not self._inbox.is_broken:
            self.scheduler.end(sequence)  # first: if it raises, the loop fails and ends this request again
        ticket.done = True
        if isinstance(event, EngineFailed) and event.__cause__ is not None:  # its caller learns only the kind
            log.error("request %s: %s", shown(ticket.request.request_id), event, exc_info=event.__cause__)
        if sequence is not None:
            del self._tickets[sequence]
        label = event.result.finish_reason if isinstance(event, Finished) else event.reason
        self.metrics.requests[ticket.skill.name, label] += 1
        self.metrics.request_s[ticket.skill.name].observe(self._clock() - ticket.arrived_s)
        self._inbox.remove(ticket)
        self._preparation.release(ticket)
        self._deadlines.drop_ended(self._inbox.num_open)
        # Callers and deadlines may keep the ticket for long; picture and adapter are not kept with it.
        ticket.request = replace(ticket.request, image=None)
        ticket.prepared = ticket.sequence = ticket.adapter = None
        self._tell(ticket, event)

    def _tell_reasoning(self, ticket: Ticket, text: str) -> None:
        if text and ticket.request.stream and ticket.sequence is not None:
            self._tell(ticket, Chunk(text, ticket.sequence.num_taken, "reasoning"))

    def _tell(self, ticket: Ticket, event: Event) -> None:
        try:
            ticket.sink(event)
        except Exception:  # a fault of this listener must not reach the others
            log.exception("the sink of request %s failed", shown(ticket.request.request_id))
