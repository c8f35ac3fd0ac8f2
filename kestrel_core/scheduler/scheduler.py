"""What the next step computes: admission, paging, preemption, and what follows from the samples.

Owns the queue, the slots, the pages, the prefix cache and the indices of adapters. No torch, no threads, no
clock: `plan` says what to launch, `take_loads` which adapters to load, `commit` takes the samples, and
sequences join and leave in between.

If the runtime overlaps steps, a step is planned while the one before it is still being computed. Its decodes
are fed whatever that step samples. If a sequence then ends, or its reply feeds something else, what was
computed ahead for it is void. Steps run in order, so a page can be given to another sequence while an earlier
step still writes to it.
"""

from bisect import insort
from collections import deque
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from kestrel_core.loop.sequence import GO_ON, Outcome, Sequence, cut_short
from kestrel_core.loop.step import NOT_RUNNING, Adapter, Input, Running, Sample, Span, StepPlan
from kestrel_core.protocol.errors import EngineFailed, KestrelError, caused
from kestrel_core.scheduler.adapter_slots import AdapterSlots
from kestrel_core.scheduler.lost_reply import next_readout
from kestrel_core.scheduler.pacing import STREAM_TOKENS, PacedPrefills, Pacing
from kestrel_core.scheduler.page_keys import page_keys
from kestrel_core.scheduler.pages import PagePool
from kestrel_core.scheduler.prefills import Prefills, Reading
from kestrel_core.scheduler.prefix_cache import PrefixCache
from kestrel_core.scheduler.shares import Shares
from kestrel_core.scheduler.waiting import Entry, Waiting

NOT_A_NUMBER = "the model's output is not a number for this request"
LOOKAHEAD = 32  # so many waiting sequences are looked at if the first ones wait for an image being computed

# A plain tuple, as `Reading` is.
Update = tuple[Sequence, Outcome, KestrelError | None]  # what a step did for a sequence


@dataclass(frozen=True, slots=True)
class Limits:
    max_running: int
    max_context: int
    step_tokens: int  # positions of a step after which no prefill is added, so that decodes do not stall


class Scheduler:
    def __init__(
        self,
        pool: PagePool,
        prefix_cache: PrefixCache,
        page_size: int,
        limits: Limits,
        adapter_slots: AdapterSlots | None = None,
        pacing: Pacing | None = None,
    ) -> None:
        """Without `adapter_slots` no sequence can have an adapter. Without `pacing` a step takes all that
        fits, however long streams wait for it.
        """
        self.pool = pool
        self.prefix_cache = prefix_cache
        self.adapter_slots = adapter_slots or AdapterSlots(0)
        assert limits.max_context <= (pool.num_pages - 1) * page_size, "one sequence alone could not finish"
        self._page_size = page_size
        self._limits = limits
        self._pacing = pacing
        self._waiting = Waiting()
        self._shares = Shares()
        self._running: list[Sequence] = []  # in the order in which they are served
        self._free_slots = list(range(limits.max_running, 0, -1))
        self._in_flight: deque[list[Reading]] = deque()
        self._building: set[Hashable] = set()  # roots whose image prefix is being computed right now
        self._started: list[Sequence] = []
        self._loads: list[tuple[int, Adapter]] = []
        self.num_preemptions = 0

    @property
    def num_waiting(self) -> int:
        return len(self._waiting)

    @property
    def num_waiting_for_adapters(self) -> int:
        """Those whose adapter is not on the device. Any thread may ask."""
        is_ready = self.adapter_slots.is_ready
        return sum(n for identity, n in self._waiting.counts().items() if not is_ready(identity))

    @property
    def num_running(self) -> int:
        return len(self._running)

    @property
    def running(self) -> list[Sequence]:
        return list(self._running)

    def take_started(self) -> list[Sequence]:
        """The sequences that got a slot since the last call, for the first time or after a preemption."""
        started, self._started = self._started, []
        return started

    def admit(self, sequence: Sequence) -> None:
        """Queue it. The lowest `order` is served first: a time of arrival, moved by the priority in seconds.

        Between two sequences of a tenant that never changes: one that came early enough stands before a later
        one of better priority. Between tenants see `Shares`.
        """
        assert sequence.adapter is None or self.adapter_slots.max_adapters, "there is no room for adapters"
        self._waiting.add(sequence)

    def plan(self) -> StepPlan | None:
        """The next step, or None when nothing can be computed until somebody joins or an adapter is there."""
        if self.adapter_slots.max_adapters:
            self._allot_adapters()
        if self._waiting and not self._free_slots:
            self._yield_slot()
        num_preemptions = self.num_preemptions
        spans: list[Span] = []
        readings: list[Reading] = []
        prefilling: list[Sequence] = []
        # In order. A sequence is only preempted for one before it, so no span has to be taken back.
        for sequence in list(self._running):
            computed = sequence.computed
            known = sequence.image_length + len(sequence.inputs) - computed  # inputs still to be computed
            if (known > 1 or computed >= sequence.room) and not self._make_room(sequence):
                continue
            if known > 1:
                prefilling.append(sequence)
                continue
            # One known input is left, or the last readout is launched and its sample comes next.
            pending = sequence.num_pending
            if known >= 0 and (readout := next_readout(sequence, pending)) is not None:
                span = sequence.decodes[computed & 1]
                span.start, span.stop, span.readout = computed, computed + 1, readout
                span.inputs = (sequence.inputs[-1],) if known else None
                span.draw = sequence.num_taken + pending
                spans.append(span)
                readings.append((sequence, sequence.epoch, span))
                sequence.computed, sequence.num_pending = span.stop, pending + 1
        prefills = self._prefills(len(spans), bool(prefilling), readings)
        for sequence in prefilling:
            prefills.add(sequence)
        # Otherwise those that were preempted just now would come straight back.
        if num_preemptions == self.num_preemptions:
            self._start_waiting(prefills)
        prefills.finish()
        spans += prefills.spans
        if not spans:
            return None
        self._in_flight.append(readings)
        return StepPlan(spans, prefills.encodes)

    def commit(self, samples: Mapping[int, Sample]) -> list[Update]:
        """Take the samples of the oldest launched step."""
        updates: list[Update] = []
        for sequence, epoch, span in self._in_flight.popleft():
            if sequence.epoch != epoch:
                continue  # it has ended, or was fed something else meanwhile
            sequence.num_pending -= 1
            sample, stop = samples[span.sequence.slot], span.stop
            token, coord, size, _, _, finite = sample
            if not finite:
                updates.append(self.fail(sequence, EngineFailed(NOT_A_NUMBER)))
                continue
            try:
                outcome = sequence.reply.take(sample)
                if outcome is not GO_ON or stop >= self._limits.max_context:
                    outcome = self._within_context(sequence, outcome, stop)
            except Exception as error:  # as in `_readout`
                failed = EngineFailed(f"the skill could not read the model's output ({type(error).__name__})")
                updates.append(self.fail(sequence, caused(failed, error)))
                continue
            updates.append((sequence, outcome, None))
            sequence.num_taken, sequence.verified = sequence.num_taken + 1, stop
            if outcome is GO_ON or (outcome.finish is None and outcome.feed is None):
                is_token = coord is None and size is None
                sequence.inputs.append(token if is_token and token is not None else sample.feed)
            elif outcome.finish is not None:
                self.end(sequence)
            else:
                self._feed_instead(sequence, outcome.feed or ())
            if sequence.shares_next:
                self._share(sequence)
        return updates

    def end(self, sequence: Sequence) -> None:
        """It has finished, failed or was cancelled, in whatever state: it gives everything back."""
        assert not sequence.ended
        sequence.ended = True
        sequence.epoch += 1
        if sequence.slot:
            self._release(sequence)
        else:
            self._waiting.end(sequence)

    # Adapters

    def take_loads(self) -> list[tuple[int, Adapter]]:
        """The adapters that `plan` gave an index. No sequence uses this index until `adapter_loaded`."""
        loads, self._loads = self._loads, []
        return loads

    def adapter_loaded(self, identity: str) -> None:
        self.adapter_slots.loaded(identity)

    def adapter_failed(self, identity: str, error: KestrelError) -> list[Update]:
        """It could not be loaded: this fails the sequences that wait for it, and no others."""
        self.adapter_slots.failed(identity)
        return [self.fail(sequence, error) for sequence in self._waiting.with_adapter(identity)]

    def check(self) -> None:
        """Raise if the books do not agree. For tests and for when the engine is idle."""
        self.pool.check()
        self.prefix_cache.check()
        own = sum(len(s.running.pages) - len(s.prefix.pages) for s in self._running)
        known = self.pool.num_free + own + self.prefix_cache.num_cached_pages
        assert known == self.pool.num_pages - 1, "a page is neither a sequence's nor cached"
        slots = sorted(self._free_slots + [s.slot for s in self._running])
        assert slots == list(range(1, self._limits.max_running + 1)), "a slot is lost or used twice"
        self._waiting.check()
        self._shares.check(self._running)
        roots = {s.root for s in self._running if len(s.prefix.pages) * self._page_size < s.image_length}
        assert self._building <= roots, "an image is awaited that no sequence computes"
        self.adapter_slots.check((s.adapter, s.running.adapter) for s in self._running)

    # The steps of a plan

    def _allot_adapters(self) -> None:
        firsts = self._waiting.firsts()
        loads = self.adapter_slots.allot({identity: place for identity, (place, _) in firsts.items()})
        self._loads += ((index, firsts[identity][1]) for index, identity in loads)

    def _yield_slot(self) -> None:
        """Preempt one of a tenant that has several slots for a tenant that waits and has none."""
        entry = self._waiting.first(dict(self.adapter_slots.usable()), self._shares.place)
        if entry is not None and entry[2].root not in self._building:
            last = self._shares.who_yields_to(entry, self._running)
            if last is not None:
                self.preempt(last)

    def _make_room(self, sequence: Sequence) -> bool:
        """Allocate pages for the known inputs and one more position, preempting the last if there are none.

        False: the sequence was preempted, or it needs no further position.
        """
        computed, held = sequence.computed, sequence.running.pages
        stop = min(max(sequence.length, computed + 1), self._limits.max_context)
        if sequence.room >= stop:
            return computed < stop
        while sequence.running is not NOT_RUNNING:  # otherwise it was preempted for one before it
            pages = self._allocate(-(-stop // self._page_size) - len(held))
            if pages is not None:
                held += pages
                sequence.room = min(len(held) * self._page_size, self._limits.max_context)
                return True
            self.preempt(self._running[-1])
        return False

    def _prefills(self, num_decodes: int, any_wait: bool, readings: list[Reading]) -> Prefills:
        budget = max(self._limits.step_tokens - num_decodes, 1)
        if self._pacing is None or not (any_wait or self._waiting) or not self._has_streams:
            return Prefills(budget, readings)
        return PacedPrefills(budget, readings, self._pacing)

    @property
    def _has_streams(self) -> bool:
        """With a readout pending, so if nothing else is computed now, a sample comes and work goes on."""
        return any(s.num_pending and s.num_taken >= STREAM_TOKENS for s in self._running)

    def _start_waiting(self, prefills: Prefills) -> None:
        """Start waiting sequences, in order, while the step has room for their prompts."""
        if not self._waiting or not self._free_slots:
            return
        aside: list[Entry] = []
        usable = dict(self.adapter_slots.usable())
        while self._free_slots and len(aside) < LOOKAHEAD:
            entry = self._waiting.take(usable, self._shares.place)
            if entry is None:
                break
            sequence = entry[2]
            if sequence.num_pending or sequence.root in self._building:
                aside.append(entry)  # its sample, or its image, will be there in a step or two
                continue
            if prefills.is_full or not self._start(sequence, prefills):
                aside.append(entry)
                break
            prefills.add(sequence)
        self._waiting.put_back(aside)

    def _start(self, sequence: Sequence, prefills: Prefills) -> bool:
        """Match a prefix, allocate the other pages and acquire a slot, or change nothing and return False."""
        # At least one position has to be computed: the readout needs its hidden state.
        keys = page_keys(sequence, self._page_size, (sequence.length - 1) // self._page_size)
        prefix = self.prefix_cache.match(sequence.root, keys)
        cached = len(prefix.pages) * self._page_size
        if cached < sequence.image_length and not prefills.may_start(sequence.image_length):
            return False
        self.prefix_cache.lock(prefix)
        missing = -(-sequence.length // self._page_size) - len(prefix.pages)
        # Leave a page for each running sequence; otherwise the new one would soon be preempted again.
        spare = self.pool.num_free + self.prefix_cache.num_evictable_pages - missing
        pages = self._allocate(missing) if spare >= len(self._running) else None
        if pages is None:
            self.prefix_cache.unlock(prefix)
            return False
        slot, index = self._free_slots.pop(), self.adapter_slots.pin(sequence.adapter)
        sequence.running = Running(slot, [*prefix.pages, *pages], sequence.sampling, index)
        sequence.prefix = prefix
        sequence.room = min(len(sequence.running.pages) * self._page_size, self._limits.max_context)
        self._shares.acquire(sequence.tenant)
        sequence.decodes = Span(sequence.running), Span(sequence.running)
        sequence.computed = sequence.verified = cached
        sequence.shares_next = cached < sequence.image_length or not sequence.num_taken
        if not sequence.num_preemptions:
            sequence.cached_tokens = cached
        insort(self._running, sequence, key=lambda s: s.order)
        self._started.append(sequence)
        if cached < sequence.image_length and self.prefix_cache.enabled:
            self._building.add(sequence.root)
        return True

    # What becomes of a sample

    def _within_context(self, sequence: Sequence, outcome: Outcome, stop: int) -> Outcome:
        """The same, or the end of the answer if what it feeds next, at `stop`, does not fit the context."""
        num_fed = 1 if outcome.feed is None else len(outcome.feed)
        fits = outcome.finish is not None or stop + num_fed <= self._limits.max_context
        return outcome if fits else cut_short(outcome, sequence.reply)

    def _feed_instead(self, sequence: Sequence, feed: tuple[Input, ...]) -> None:
        """Feed something else in place of the sample: what a later step computed from the sample is void."""
        sequence.epoch += sequence.num_pending > 0
        sequence.num_pending = 0
        sequence.computed = min(sequence.computed, sequence.length)
        sequence.inputs += feed
        sequence.decodes = Span(sequence.running), Span(sequence.running)  # a void one is still under way

    def fail(self, sequence: Sequence, error: KestrelError) -> Update:
        sequence.verified = 0  # none of it can be trusted
        self.end(sequence)
        return sequence, GO_ON, error

    # Pages, slots and prefixes

    def _allocate(self, count: int) -> list[int] | None:
        pages = self.pool.allocate(count)
        if pages is None and self.prefix_cache.evict(count - self.pool.num_free):
            pages = self.pool.allocate(count)
        return pages

    def _share(self, sequence: Sequence) -> None:
        """Let others match the prompt from now on. Its full pages now belong to the cache, and are locked."""
        num_pages, pages = sequence.verified // self._page_size, sequence.running.pages
        before, keys = len(sequence.prefix.pages), page_keys(sequence, self._page_size, num_pages)
        prefix = self.prefix_cache.insert(sequence.root, keys, pages[:num_pages])
        self.prefix_cache.lock(prefix)
        self.prefix_cache.unlock(sequence.prefix)
        self.pool.free(pages[before : len(prefix.pages)])
        pages[: len(prefix.pages)] = prefix.pages
        sequence.prefix, sequence.shares_next = prefix, False
        self._building.discard(sequence.root)

    def preempt(self, sequence: Sequence) -> None:
        """Put it back into the queue, at its old place. It keeps its answer and its launched readouts."""
        self._release(sequence)
        sequence.num_preemptions += 1
        self.num_preemptions += 1
        self.admit(sequence)

    def _release(self, sequence: Sequence) -> None:
        num_pages, pages = min(sequence.verified, sequence.length) // self._page_size, sequence.running.pages
        if num_pages > len(sequence.prefix.pages):
            keys = page_keys(sequence, self._page_size, num_pages)
            self.prefix_cache.insert(sequence.root, keys, pages[:num_pages])
        if len(sequence.prefix.pages) * self._page_size < sequence.image_length:  # it was computing the image
            self._building.discard(sequence.root)
        self.pool.free(pages[len(sequence.prefix.pages) :])
        self.prefix_cache.unlock(sequence.prefix)
        self._free_slots.append(sequence.slot)
        self.adapter_slots.unpin(sequence.adapter)
        self._running.remove(sequence)
        self._shares.release(sequence.tenant)
        sequence.running, sequence.prefix, sequence.shares_next = NOT_RUNNING, None, False
        sequence.computed = sequence.room = 0
