"""The training of the wider world: its batches fit their slots, and the server reads what they teach."""

from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from examples.train_tiny import average, checkpoints, export, grow, network, things_batches, train
from examples.train_tiny.batches import LENGTH, fill, filled
from examples.train_tiny.teacher import Teacher
from examples.train_tiny.things_batches import LONGEST, ORDER, draw_task, named_loosely, new_scene
from examples.train_tiny.words import TOKENIZER, Words
from examples.train_tiny.worlds import THINGS, WORLDS
from kestrel_core.intake.tokenizer import Tokenizer
from kestrel_core.loop.step import PreparedImage
from kestrel_core.moondream.checkpoint.config_file import validate
from kestrel_core.moondream.config import MOONDREAM_TINY
from kestrel_core.moondream.model import Moondream
from kestrel_core.protocol.messages import Request
from kestrel_core.skills.registry import builtin_skills
from kestrel_core.skills.spec import Language
from kestrel_tools.things.compose import draw_scene
from kestrel_tools.things.language import choose, targets
from kestrel_tools.things.language.fact import CANNOT_TELL
from kestrel_tools.things.pictures import outline_of
from kestrel_tools.things.scene import Item
from tests.small_atlas import small_atlas

ATLAS = small_atlas()
TEACHER = Teacher(MOONDREAM_TINY.tokenizer, Words())
LANGUAGE = Language(MOONDREAM_TINY, Tokenizer.from_file(TOKENIZER, MOONDREAM_TINY))
SKILLS = builtin_skills()
IMAGE = PreparedImage("picture", None, (1, 1))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    ATLAS.sprites.save(tmp_path / "things-mine.npz")
    ATLAS.fonts.save(tmp_path / "font-dots.npz")
    return tmp_path


def test_the_model_is_valid_and_small_enough() -> None:
    validate(MOONDREAM_TINY)
    with torch.device("meta"):
        parameters = sum(parameter.numel() for parameter in Moondream(MOONDREAM_TINY).parameters())
    assert 2 * parameters < 24e6, "bytes in bfloat16"


@pytest.mark.parametrize("text", ["What's the colour of the dog?", " all objects", "Mon 12, Tue 40.", ""])
def test_the_plain_tokenizer_gives_the_server_s_ids(text: str) -> None:
    words = Words()
    assert words.encode(text) == list(LANGUAGE.tokenizer.encode(text))
    assert len(words._ids) <= MOONDREAM_TINY.text.vocab_size


def test_rows_are_nearly_full_with_tasks_of_every_sort() -> None:
    rng, rows = Random(3), []
    for sort in ("things", "charts") * 8:
        scene = new_scene(rng, ATLAS, sort, 1.2, (252, 336), 12)
        draw = partial(draw_task, scene=scene, teacher=TEACHER, atlas=ATLAS)
        rows.append(fill(rng, draw, ORDER, []))
    assert all(sum(task.length for task in row) <= LENGTH for row in rows)
    assert filled(rows) > 0.95
    skills = {task.kind.split()[0] for row in rows for task in row}
    assert {"caption", "detect", "point", "segment", "reason", "talk"} <= skills


def test_only_things_that_are_nearly_below_each_other_change_places() -> None:
    rng = Random(8)
    scene = max(
        (new_scene(rng, ATLAS, "things", 1.2, (252, 336), 12) for _ in range(20)), key=lambda s: len(s.items)
    )
    orders = [named_loosely(rng, scene).items for _ in range(100)]
    assert all(sorted(map(id, order)) == sorted(map(id, scene.items)) for order in orders)
    assert len({tuple(map(id, order)) for order in orders}) > 1
    for order in orders:
        for before, after in pairwise(order):
            assert after.centre[0] > before.centre[0] - 6 * things_batches.LOOSELY


def test_one_seed_gives_one_batch_whoever_makes_it(folder: Path) -> None:
    make = partial(things_batches.make_batch, config=MOONDREAM_TINY, teacher=TEACHER, folder=folder)
    steps = (0, 40_000, 40_001, 40_002)
    one, other = ([make(step, seed=1, size=2) for step in steps] for _ in range(2))
    for batch, again in zip(one, other, strict=True):
        assert np.array_equal(batch.rows.ids, again.rows.ids)
        assert batch.scenes.keys() == again.scenes.keys()
        assert all(np.array_equal(batch.scenes[name], again.scenes[name]) for name in batch.scenes)


def test_an_answer_is_read_by_the_server_as_it_is_taught() -> None:
    rng = Random(12)
    for _ in range(30):
        scene = draw_scene(rng, ATLAS, 1.2, (252, 336))
        fact = choose.fact(rng, scene)
        task = TEACHER.query(Random(1), fact._replace(sentence=""))
        request = Request("query", {"question": fact.question}, IMAGE)
        assert SKILLS["query"].prompt(request, LANGUAGE).inputs == task.prompt
        assert told(request, task)["answer"] == fact.answer


def test_no_question_is_longer_than_a_task_may_be() -> None:
    rng, unknown, asked = Random(21), 0, 0
    for _ in range(60):
        scene = new_scene(
            rng, ATLAS, rng.choice(("things", "things", "things", "charts")), 1.2, (252, 336), 12
        )
        for _ in range(20):
            fact = choose.fact(rng, scene)
            assert TEACHER.query(rng, fact).length <= LONGEST, fact
            assert len(TEACHER.words.encode(fact.question)) <= 64, fact
        for _ in range(40):
            task = draw_task(rng, "short", scene, TEACHER, ATLAS)
            asked += task is not None
            unknown += task is not None and task.text == CANNOT_TELL
    assert unknown < 0.04 * asked


def test_outlines_lie_in_their_boxes_and_are_read_by_the_server() -> None:
    rng, seen = Random(5), 0
    while seen < 15:
        scene = draw_scene(rng, ATLAS, 1.2, (252, 336))
        words, found = targets.target(rng, scene)
        items = [one for one in found if isinstance(one, Item)]
        if not items or len(items) < len(found):
            continue
        seen += 1
        task = TEACHER.outlined(words, [(item, outline_of(item, scene, ATLAS)) for item in items])
        request = Request("segment", {"object": words}, IMAGE)
        assert SKILLS["segment"].prompt(request, LANGUAGE).inputs == task.prompt
        segments = told(request, task)["segments"]
        assert [tuple(one["bbox"].values()) for one in segments] == [
            pytest.approx(item.box) for item in items
        ]


def told(request: Request, task: Any) -> dict[str, Any]:
    """The true answer, as if the model had given it."""
    reply = SKILLS[request.skill].reply(request, LANGUAGE)
    *before, last = (reply.take(sample) for sample in task.answer)
    assert all(outcome.finish is None for outcome in before) and last.finish == "stop"
    return reply.output()


def test_a_slice_ends_by_its_clock_or_with_the_last_step_of_all() -> None:
    options = train.parse(["--of", "1000", "--minutes", "2"])
    assert train.passed(options, 10, 0, 0.5) == pytest.approx(0.5)
    assert train.passed(options, 1000, 990, 1) == 1.0
    assert WORLDS["things"] is THINGS


def test_a_mean_of_checkpoints_has_the_types_and_files_of_the_later(tmp_path: Path) -> None:
    before, after, out = tmp_path / "before", tmp_path / "after", tmp_path / "out"
    for folder, value in ((before, 1.0), (after, 2.0)):
        folder.mkdir()
        weights = {"a": torch.full((2, 3), value, dtype=torch.bfloat16), "b": torch.full((2,), value)}
        save_file(weights, folder / "model.safetensors", {"steps": str(value)})
        for name in ("config.json", "tokenizer.json"):
            (folder / name).write_text(folder.name)
    average.average([before], after, [0.25], out)
    mixed = load_file(out / "model.safetensors")
    assert mixed["a"].dtype == torch.bfloat16 and mixed["b"].dtype == torch.float32
    assert all(torch.equal(weight.float(), torch.full(weight.shape, 1.75)) for weight in mixed.values())
    assert (out / "config.json").read_text() == (out / "tokenizer.json").read_text() == "after"
    average.average([before, out], after, [0.25, 0.5], out)
    assert load_file(out / "model.safetensors")["b"].tolist() == [1.625, 1.625]  # 0.25 + 0.875 + 0.5
    save_file({"a": torch.zeros(1)}, before / "model.safetensors")
    with pytest.raises(SystemExit, match="not of one network"):
        average.average([before], after, [0.25], out)


def test_a_checkpoint_is_made_again_from_halves_that_travelled(tmp_path: Path) -> None:
    config = replace(MOONDREAM_TINY, text=replace(MOONDREAM_TINY.text, n_layers=3))
    model = network.new_model(config, torch.device("cpu"), 0)
    checkpoints.save(model, tmp_path, 5, half=True)
    kept = load_file(tmp_path / "model.safetensors")
    (tmp_path / "model.safetensors").unlink()
    export.main(tmp_path)
    made = load_file(tmp_path / "model.safetensors")
    assert made.keys() == kept.keys()
    for name, weight in made.items():
        torch.testing.assert_close(weight, kept[name], rtol=2**-7, atol=1e-4)


def test_a_grown_checkpoint_answers_as_before(tmp_path: Path) -> None:
    sizes = [replace(MOONDREAM_TINY, text=replace(MOONDREAM_TINY.text, n_layers=n)) for n in (3, 4)]
    before = network.new_model(sizes[0], torch.device("cpu"), 0)
    (tmp_path / "before").mkdir()
    checkpoints.save(before, tmp_path / "before", 5)
    grow.grow(tmp_path / "before", 2, tmp_path / "grown", sizes[1])
    after = network.new_model(sizes[1], torch.device("cpu"), 1)
    checkpoints.resume(after, tmp_path / "grown")
    assert checkpoints.trained_steps(tmp_path / "grown") == 5
    with torch.no_grad():
        x, positions = torch.randn(9, MOONDREAM_TINY.text.dim), torch.arange(9)
        answers = [model.text(x, positions, lambda layer, q, k, v: q + v) for model in (before, after)]
    assert torch.equal(*answers)
    new = after.get_parameter("text.blocks.2.attn.qkv.weight")
    assert new.abs().sum() > 0, "it can be trained"
    for at, told in ((1, "makes a dense block one of experts"), (4, "has 3 text blocks: no block 4 makes 4")):
        with pytest.raises(SystemExit, match=told):
            grow.grow(tmp_path / "before", at, tmp_path / "grown", sizes[1])
