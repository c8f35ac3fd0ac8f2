"""The training of the small world: its rows, its steps, and the files that it writes and goes on from."""

from functools import partial
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch

from examples.train_tiny import batches, checkpoints, pace, train, trainer
from examples.train_tiny.batches import LENGTH
from kestrel_core.build import load_model
from kestrel_tools.finetune.bins import bin_of_coord, bin_of_size
from kestrel_tools.scenes.world import draw_scene
from tests.small_training import CPU, TEACHER, new_model, row_of_tasks, smaller_config

pytestmark = pytest.mark.usefixtures("one_thread")


def test_every_sample_of_a_task_is_read_before_it_is_fed() -> None:
    rng, config = Random(9), smaller_config()
    tasks = [row_of_tasks(rng, draw_scene(rng, 1.0)) for _ in range(3)]
    rows = batches.lay(tasks, LENGTH, config)
    read = [sample for row in tasks for task in row for sample in task.answer]
    assert rows.tokens.tolist() == [sample.token for sample in read if sample.token is not None]
    bins = config.region.coord_out_dim
    assert rows.coords.tolist() == [bin_of_coord(s.coord, bins) for s in read if s.coord is not None]
    wide = config.region.num_size_bins
    assert rows.sizes.tolist() == [[bin_of_size(n, wide) for n in s.size] for s in read if s.size is not None]
    assert set(rows.coord_from + 1) <= set(rows.coord_at) and set(rows.size_from + 1) <= set(rows.size_at)
    lengths = [task.length for task in tasks[0]]
    begins = np.repeat(np.cumsum([0, *lengths[:-1]]), lengths)
    assert rows.begin[0, : len(begins)].tolist() == begins.tolist()
    assert rows.alone[0].sum() == lengths[0], "the talk that comes first"
    assert rows.token_weights.sum() == pytest.approx(
        sum(
            weight_of(task.kind) * sum(s.token is not None for s in task.answer) ** 0.5
            for row in tasks
            for task in row
        ),
        rel=1e-5,
    )


def weight_of(kind: str) -> float:
    """What is slow to be learnt counts double, counts more, half as much again captions, of which one thing
    overlooked makes all wrong.
    """
    if kind.startswith("count"):
        return 2.5
    if kind.startswith(("read", "relation", "list")) or kind == "reason count":
        return 2.0
    return 1.5 if kind.startswith(("caption", "describe")) else 1.0


def test_the_average_of_the_weights_follows_them() -> None:
    taught = trainer.Trainer(new_model(), batch=2, lr=5e-3, ema=0.5)
    batch = batches.make_batch(0, 0, 2, smaller_config(), TEACHER)
    name = "text.blocks.0.attn.qkv.weight"
    before = taught.model.get_parameter(name).detach().clone()
    taught.step(batch, 1.0)
    now, kept = taught.model.get_parameter(name), 2 / 11
    torch.testing.assert_close(taught.average.get_parameter(name), kept * before + (1 - kept) * now.detach())


def test_a_profile_tells_where_the_time_goes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pace, "UNMEASURED", 1)
    monkeypatch.setattr(pace, "COUNTED_S", 0.01)
    make = partial(batches.make_batch, seed=1, size=2, config=smaller_config(), teacher=TEACHER)
    pace.report(trainer.Trainer(new_model(), batch=2, lr=1e-3), batches.stream(make, 0), 2)
    said = capsys.readouterr().out
    for part in ("steps/s", "batches/s", "drawing", "vision", "text", "losses", "backward", "optimizer"):
        assert part in said, said


def test_two_slices_make_one_schedule() -> None:
    assert train.parse(["--minutes", "22", "--slice", "2", "2"]).part == (0.5, 1.0)
    assert train.parse(["--minutes", "22", "--slice", "1", "2"]).part == (0.0, 0.5)


def test_training_goes_on_from_a_checkpoint_alone(tmp_path: Path) -> None:
    model, other = new_model(1), new_model(2)
    checkpoints.save(new_model(5), tmp_path, 9, average=model)
    for path in tmp_path.glob("resume_*"):
        path.unlink()
    assert checkpoints.trained_steps(tmp_path) == 9
    checkpoints.resume(other, tmp_path)
    for name, parameter in model.named_parameters():
        assert torch.equal(other.get_parameter(name), parameter.bfloat16().float()), name


def test_workers_send_the_batches_in_order() -> None:
    make = partial(batches.make_batch, seed=1, size=1, config=smaller_config(), teacher=TEACHER)
    stream = batches.stream(make, 2, first=5)
    for step in range(5, 9):
        assert np.array_equal(next(stream).rows.ids, make(step).rows.ids)
    stream.close()


def test_a_batch_that_cannot_be_made_is_replaced_and_told(capfd: pytest.CaptureFixture[str]) -> None:
    right = partial(batches.make_batch, seed=1, size=1, config=smaller_config(), teacher=TEACHER)

    def make(step: int) -> batches.Batch:
        if step == 6:
            raise ValueError("a label of too many letters")
        return right(step)

    stream = batches.stream(make, 2, first=5)
    made = [next(stream) for _ in range(3)]
    stream.close()
    for batch, step in zip(made, (5, 6 + batches.REPLACED, 7), strict=True):
        assert np.array_equal(batch.rows.ids, right(step).rows.ids)
    told = capfd.readouterr()
    assert "batch 6 cannot be made" in told.out and "too many letters" in told.err


def test_the_schedule_begins_high_and_ends_low() -> None:
    rates = [train.schedule(at / 100) for at in range(101)]
    assert rates[0] == 1 and rates[100] == pytest.approx(0.01)
    assert rates == sorted(rates, reverse=True)


def test_a_few_steps_reduce_the_loss() -> None:
    taught = trainer.Trainer(new_model(), batch=2, lr=5e-3)
    batch = batches.make_batch(0, 0, 2, smaller_config(), TEACHER)
    losses = [float(taught.step(batch, 1.0)["loss"]) for _ in range(12)]
    assert losses[-1] < 0.7 * losses[0]


def test_a_saved_model_is_resumed_whole_and_loaded_by_the_server(tmp_path: Path) -> None:
    model, other = new_model(1), new_model(2)
    checkpoints.save(model, tmp_path, 7)
    assert checkpoints.trained_steps(tmp_path) == 7
    checkpoints.resume(other, tmp_path)
    for name, parameter in model.named_parameters():
        assert torch.equal(other.get_parameter(name), parameter), name
    served = load_model(tmp_path, None, CPU, torch.float32)
    assert served.language.config == smaller_config()
    for name, parameter in model.named_parameters():
        assert torch.equal(served.network.get_parameter(name), parameter.bfloat16().float()), name


def test_rows_are_nearly_full() -> None:
    rng = Random(8)
    rows = [row_of_tasks(rng, draw_scene(rng, 1.2)) for _ in range(30)]
    assert all(sum(task.length for task in row) <= LENGTH for row in rows)
    assert batches.filled(rows) > 0.95
    assert min(len(row) for row in rows) >= 3, "a caption of eight shapes takes most of a row"
