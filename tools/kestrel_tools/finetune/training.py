"""The training itself: steps and their rate, evaluations, the best weights, and when it ends."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from kestrel_core.moondream.model import Moondream
from kestrel_core.protocol.errors import InvalidRequest

from .features import Features
from .forward import Loss, hidden_states, loss_of
from .lessons import Lesson
from .options import FinetuneOptions
from .order import passes, steps_of_epoch
from .packing import pack
from .parameters import Parameters

AVERAGED = 20  # steps of the training loss that is shown
# Adam remembers squared gradients for 50 steps, not 1,000: a training of an adapter may have hardly more.
BETAS = (0.9, 0.98)


@dataclass
class State:
    """How far a run is. A checkpoint keeps it, with the weights and the optimiser's."""

    step: int = 0
    seconds: float = 0.0
    best_loss: float = math.inf
    best_step: int = 0
    since_best: int = 0  # evaluations
    training_losses: list[tuple[int, float]] = field(default_factory=list)
    eval_losses: list[tuple[int, float]] = field(default_factory=list)
    ended: str = ""  # why, once it has


class Trainer:
    """Owns the optimiser; the network is only read."""

    def __init__(
        self, network: Moondream, parameters: Parameters, features: Features, options: FinetuneOptions
    ) -> None:
        network.requires_grad_(False)
        self.parameters = parameters
        self.tensors = [tensor for _, tensor in parameters.named()]
        self.optimiser = torch.optim.AdamW(
            self.tensors, lr=options.lr, betas=BETAS, weight_decay=options.weight_decay
        )
        self._network = network
        self._features = features
        self._options = options
        on_cuda = network.text.wte.device.type == "cuda"
        self._recompute = options.recompute == "on" or (options.recompute == "auto" and on_cuda)

    def step(self, lessons: Sequence[Lesson], rate: float) -> float:
        """One step at this learning rate. Returns the mean loss before it."""
        self.optimiser.zero_grad()
        total, count = 0.0, sum(lesson.num_choices for lesson in lessons)
        for found in self._losses(lessons, self._recompute):
            (found.total / count).backward()
            total += float(found.total.detach())
        if not math.isfinite(total):
            raise InvalidRequest(f"the loss is {total}, no number any more; try a lower lr")
        torch.nn.utils.clip_grad_norm_(self.tensors, self._options.clip)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.step()
        return total / count

    @torch.no_grad()
    def evaluate(self, lessons: Sequence[Lesson]) -> float:
        total = sum(float(found.total) for found in self._losses(lessons, recompute=False))
        return total / sum(lesson.num_choices for lesson in lessons)

    def _losses(self, lessons: Sequence[Lesson], recompute: bool) -> Iterator[Loss]:
        prefix = self._network.config.image_prefix_length
        for groups in passes(lessons, prefix, self._options.max_positions):
            packed = pack(self._network, groups, self._features)
            hidden = hidden_states(self._network, packed, self.parameters, recompute)
            yield loss_of(self._network, hidden, packed.reads)


@dataclass
class Run:
    """A training of these lessons from a state on, until it ends or is told to stop."""

    trainer: Trainer
    state: State
    best: dict[str, Tensor]
    training: Sequence[Lesson]
    evaluation: Sequence[Lesson]
    options: FinetuneOptions
    tell: Callable[[str], None]  # what is being done now
    note: Callable[[str], None]  # what has been found
    stop: Callable[[], bool]
    keep: Callable[[], None]  # a checkpoint

    def __post_init__(self) -> None:
        self._per_epoch = -(-len(self.training) // self.options.batch)
        self.num_steps = self.options.steps or self.options.epochs * self._per_epoch
        self._every = self.options.eval_every or self._per_epoch

    def go(self) -> None:
        """Ends with the best weights in place."""
        state, began = self.state, time.monotonic() - self.state.seconds
        self._began = time.monotonic()
        state.ended = self._reason()
        if self.evaluation and not state.eval_losses:
            self._evaluate()
        steps, epoch = list[list[Lesson]](), -1
        since, positions, before = time.monotonic(), 0, state.step
        while not state.ended:
            if state.step // self._per_epoch != epoch:
                epoch = state.step // self._per_epoch
                steps = steps_of_epoch(self.training, self.options.batch, self.options.seed, epoch)
            lessons = steps[state.step % self._per_epoch]
            rate = rate_at(state.step, self.num_steps, self.options)
            loss = self.trainer.step(lessons, rate)
            state.step += 1
            state.training_losses.append((state.step, loss))
            state.seconds = time.monotonic() - began
            positions += sum(len(lesson.inputs) for lesson in lessons)
            took = time.monotonic() - since
            left = (self.num_steps - state.step) * took / (state.step - before)
            self.tell(
                f"step {state.step:,} of {self.num_steps:,}  loss {self.shown_loss:.4f}  lr {rate:.2e}  "
                f"{positions / took:,.0f} tokens/s  {_minutes(left)} left"
            )
            self._settle()
        self.keep()
        if self.best:
            self.trainer.parameters.load(self.best)

    @property
    def shown_loss(self) -> float:
        last = [loss for _, loss in self.state.training_losses[-AVERAGED:]]
        return sum(last) / len(last)

    def _settle(self) -> None:
        """Evaluate where it is due, and see whether this was the last step."""
        state, minutes = self.state, self.options.max_minutes
        if self.evaluation and (state.step % self._every == 0 or state.step >= self.num_steps):
            self._evaluate()
        state.ended = self._reason()
        if state.ended:
            return
        if minutes is not None and time.monotonic() - self._began >= 60 * minutes:
            state.ended = f"{minutes:g} minutes are over, and --resume goes on"
        elif self.stop():
            self.keep()
            raise KeyboardInterrupt

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to go on with."""
        return bool(self._reason())

    def _reason(self) -> str:
        """Why the training is complete, if it is."""
        if self.state.step >= self.num_steps:
            return "all steps are done"
        patience = self.options.patience
        if patience and self.state.since_best >= patience:
            return f"no better loss in {patience} evaluations"
        return ""

    def _evaluate(self) -> None:
        state = self.state
        loss = self.trainer.evaluate(self.evaluation)
        state.eval_losses.append((state.step, loss))
        state.since_best += 1
        better = loss < state.best_loss
        if better:
            state.best_loss, state.best_step, state.since_best = loss, state.step, 0
            self.best.update(self.trainer.parameters.copy())
        trained = f"training loss {self.shown_loss:.4f}, " if state.training_losses else ""
        self.note(f"step {state.step:,}: {trained}evaluation loss {loss:.4f}{' (best)' if better else ''}")
        self.keep()


def rate_at(step: int, num_steps: int, options: FinetuneOptions) -> float:
    """Rises in a straight line, then falls to 0 as a cosine does."""
    rising = max(1, round(options.warmup * num_steps))
    if step < rising:
        return options.lr * (step + 1) / rising
    share = (step - rising) / max(1, num_steps - rising)
    return options.lr * 0.5 * (1 + math.cos(math.pi * share))


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
