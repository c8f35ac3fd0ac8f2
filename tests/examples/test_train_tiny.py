"""The training example: its truth is what it draws, and it trains the network that the server runs."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from examples.train_tiny import (
    batches,
    make_tokenizer,
    network,
    other_pictures,
    samples,
    thing_samples,
)
from examples.train_tiny.batches import LENGTH
from examples.train_tiny.teacher import Task, Teacher
from examples.train_tiny.things_corpus import corpus
from examples.train_tiny.words import TOKENIZER, Words
from kestrel_core.intake.image_limits import ImageLimits
from kestrel_core.intake.images import decode_image
from kestrel_core.intake.tokenizer import Tokenizer
from kestrel_core.loop.sequence import Reply
from kestrel_core.loop.step import Coord, Input, PreparedImage, Size
from kestrel_core.moondream.config import MOONDREAM_TINY, MoEConfig
from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.moe import MoE
from kestrel_core.protocol.messages import Request
from kestrel_core.skills.registry import builtin_skills
from kestrel_core.skills.spec import Language
from kestrel_tools.scenes import facts, render
from kestrel_tools.scenes.pictures import Folder, draw, encode
from kestrel_tools.scenes.score import box_iou, inside, outline_iou
from kestrel_tools.scenes.world import Background, Scene, Thing, draw_scene, outline_on_picture
from tests.small_training import CPU, TEACHER, new_model, row_of_tasks

pytestmark = pytest.mark.usefixtures("one_thread")

LANGUAGE = Language(MOONDREAM_TINY, Tokenizer.from_file(TOKENIZER, MOONDREAM_TINY))
SKILLS = builtin_skills()
IMAGE = PreparedImage("picture", None, (1, 1))


def pictures_of(scenes: list[Scene], height: int, width: int) -> Tensor:
    arrays = render.to_tensors(render.scene_arrays(scenes), CPU)
    return render.Painter().draw(arrays, height, width, torch.Generator().manual_seed(0))


def drawn_alone(count: int, aspect: float, side: int) -> Iterator[tuple[Scene, Thing, Tensor]]:
    """Things without rims, each alone on a plain ground, and the pixels [height, width] it covers by half."""
    rng = Random(f"{aspect}")
    scenes: list[Scene] = []
    grounds: list[tuple[float, float, float]] = []
    while len(scenes) < count:
        scene = draw_scene(rng, aspect)
        ground = Background("plain", scene.background.first, scene.background.first, 0.0, 0.1, 0.0)
        for thing in scene.things:
            alone = (replace(thing, edge=0.0),)
            scenes.append(replace(scene, background=ground, things=alone, print=None))
            grounds.append(ground.first)
    height, width = round(side / max(1, aspect)), round(side * min(1, aspect))
    pictures = pictures_of(scenes, height, width)
    colours = torch.tensor([scene.things[0].rgb for scene in scenes])
    away = torch.tensor(grounds) - colours  # of the ground, from the thing
    share = ((pictures - colours[..., None, None]) * away[..., None, None]).sum(1) / (away**2).sum(1)[
        :, None, None
    ]
    for scene, rest in zip(scenes, share, strict=True):
        yield scene, scene.things[0], rest < 0.5


# What is drawn.


@pytest.mark.parametrize("aspect", [1.0, 1.7])
def test_a_box_is_where_its_shape_is_drawn(aspect: float) -> None:
    shapes = set()
    for _, thing, covered in drawn_alone(70, aspect, 160):
        shapes.add(thing.shape)
        rows, columns = covered.any(1).nonzero().flatten(), covered.any(0).nonzero().flatten()
        height, width = covered.shape
        x_min, y_min, x_max, y_max = thing.box
        low = torch.tensor([columns[0] - x_min * width, rows[0] - y_min * height])
        high = torch.tensor([x_max * width - columns[-1] - 1, y_max * height - rows[-1] - 1])
        # No pixel outside; inside, a sharp tip is thinner than a pixel at its end.
        slack = torch.cat((low, high))
        assert slack.min() > -1 and slack.max() < 3, f"{thing.shape}: {slack.tolist()} pixels to spare"
    assert len(shapes) == 8


def test_an_outline_holds_the_drawn_shape_and_leaves_its_hole_out() -> None:
    for scene, thing, covered in drawn_alone(30, 1.3, 128):
        height, width = covered.shape
        y, x = np.mgrid[0:height, 0:width] + 0.5
        points = np.stack((x.ravel() / width, y.ravel() / height), 1)
        told = inside(outline_on_picture(thing, scene.unit), points).reshape(height, width)
        both, either = (told & covered.numpy()).sum(), (told | covered.numpy()).sum()
        # Round shapes are told as polygons of 12 or 16 corners, and small ones have few pixels.
        assert both / either > 0.8, thing.shape


def test_a_shape_has_its_colour() -> None:
    scenes = [scene for scene, _, _ in drawn_alone(24, 1.0, 16)]
    pictures = pictures_of(scenes, 128, 128)
    for scene, picture in zip(scenes, pictures, strict=True):
        thing = scene.things[0]
        same = (picture - torch.tensor(thing.rgb)[:, None, None]).abs().amax(0) < 1e-3
        x_min, y_min, x_max, y_max = thing.box
        # A cross covers least of its box, and the thinnest star.
        assert same.sum() > 0.2 * (x_max - x_min) * (y_max - y_min) * same.numel(), thing.name


def test_things_lie_apart_and_within_the_picture() -> None:
    rng = Random(5)
    for _ in range(50):
        boxes = [thing.box for thing in draw_scene(rng, rng.uniform(0.4, 2.5)).things]
        assert all(
            0 <= x_min < x_max <= 1 and 0 <= y_min < y_max <= 1 for x_min, y_min, x_max, y_max in boxes
        )
        pairs = [(a, b) for i, a in enumerate(boxes) for b in boxes[:i]]
        assert all(box_iou(a, b) == 0 for a, b in pairs)


def test_one_seed_gives_one_batch_whoever_makes_it() -> None:
    made = [batches.make_batch(7, 1, 3, MOONDREAM_TINY, Teacher(MOONDREAM_TINY.tokenizer)) for _ in range(2)]
    assert made[0].tiling == made[1].tiling
    assert np.array_equal(made[0].rows.ids, made[1].rows.ids)
    assert np.array_equal(made[0].scenes["things"], made[1].scenes["things"])
    other = batches.make_batch(8, 1, 3, MOONDREAM_TINY, TEACHER)
    assert not np.array_equal(made[0].rows.ids, other.rows.ids)


# What is asked, and the server's way to read the answer.


@pytest.mark.parametrize("text", ["What color is the red circle?", " big hearts", "  STOP 42, ünd?", ""])
def test_the_plain_tokenizer_gives_the_server_s_ids(text: str) -> None:
    assert Words().encode(text) == list(LANGUAGE.tokenizer.encode(text))


def tell(reply: Reply, task: Task) -> dict[str, Any]:
    """The true answer, as if the model had given it."""
    *before, last = (reply.take(sample) for sample in task.answer)
    assert [outcome.finish for outcome in before] == [None] * len(before) and last.finish == "stop"
    return reply.output()


@pytest.mark.parametrize("skill", ["point", "detect", "segment"])
def test_the_server_asks_and_reads_objects_as_they_are_taught(skill: str) -> None:
    rng = Random(11)
    for _ in range(20):
        scene = draw_scene(rng, 1.2)
        words, things = facts.target(rng, scene)
        task = (
            TEACHER.segment(words, things, scene.unit)
            if skill == "segment"
            else getattr(TEACHER, skill)(words, things)
        )
        request = Request(skill, {"object": words}, IMAGE)
        assert SKILLS[skill].prompt(request, LANGUAGE).inputs == task.prompt
        [(_, found)] = tell(SKILLS[skill].reply(request, LANGUAGE), task).items()
        if skill == "point":
            assert [(p["x"], p["y"]) for p in found] == [thing.centre for thing in things]
            continue
        boxes = [tuple((one["bbox"] if skill == "segment" else one).values()) for one in found]
        assert boxes == [pytest.approx(thing.box) for thing in things]
        if skill == "segment":
            paths = [one["svg_path"].count("Z") for one in found]
            assert paths == [2 if thing.shape == "ring" else 1 for thing in things]


def test_the_server_asks_and_reads_thoughts_as_they_are_taught() -> None:
    rng = Random(12)
    for _ in range(20):
        fact = facts.count_fact(rng, draw_scene(rng, 1.2))
        task = TEACHER.query(rng, fact, reasoning=True)
        request = Request("query", {"question": fact.question, "reasoning": True}, IMAGE)
        assert SKILLS["query"].prompt(request, LANGUAGE).inputs == task.prompt
        told = tell(SKILLS["query"].reply(request, LANGUAGE), task)
        assert told["answer"] == fact.answer
        points = [point for part in told["reasoning"]["grounding"] for point in part["points"]]
        assert points == [list(thing.centre) for _, things in fact.evidence for thing in things]


# The network in training.


def test_all_experts_at_once_give_what_the_chosen_ones_give() -> None:
    config = MoEConfig(num_experts=6, start_layer=0, experts_per_token=2, expert_inner_dim=8)
    one, all_ = MoE(12, config), network.AllExperts(12, config)
    generator = torch.Generator().manual_seed(0)
    for parameter in one.parameters():
        parameter.data.normal_(generator=generator)
    all_.load_state_dict(one.state_dict())
    h = torch.randn(40, 12, generator=generator)
    torch.testing.assert_close(all_(h), one(h), rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("in_blocks", [False, True])
@torch.no_grad()
def test_tasks_packed_behind_an_image_are_as_if_each_were_alone(in_blocks: bool) -> None:
    model, rng = new_model(), Random(4)
    config, prefix = model.config, model.config.image_prefix_length
    scenes = [draw_scene(rng, 1.0) for _ in range(2)]
    asked = [row_of_tasks(rng, scene) for scene in scenes]
    assert any(sample.size for row in asked for task in row for sample in task.answer)
    image = torch.randn(2, prefix - 1, config.text.dim, generator=torch.Generator().manual_seed(0))
    bos = model.text.wte[0].expand(2, 1, -1)

    fed = network.Fed.of(batches.lay(asked, LENGTH, config), prefix, CPU)
    x = torch.cat((bos, image, network.embed(model, fed, jitter=False)), dim=1)
    attend = network.Together(2, prefix, LENGTH, CPU, in_blocks)
    positions = attend.look(fed.begin, fed.alone)
    packed = model.text(x.flatten(0, 1), positions, attend).unflatten(0, (2, -1))
    everywhere = (
        attend.blocks_seen()[:, 0].repeat_interleave(network.BLOCK, 1).repeat_interleave(network.BLOCK, 2)
    )
    mask = network.Together(2, prefix, LENGTH, CPU, False)
    mask.look(fed.begin, fed.alone)
    seen = mask._mask[:, 0] == 0
    assert (seen <= everywhere[:, prefix : prefix + LENGTH, : prefix + LENGTH]).all(), "no block is left out"

    for row, tasks in enumerate(asked):
        at = prefix
        for task in tasks:
            told = embedded(model, [*task.prompt, *(sample.feed for sample in task.answer[:-1])])
            cut = 0 if task.alone else prefix
            whole = told if task.alone else torch.cat((bos[row], image[row], told))
            alone = model.text(whole, torch.arange(len(whole)), Alone(cut, len(whole)))
            torch.testing.assert_close(packed[row, at : at + len(told)], alone[cut:], rtol=1e-3, atol=1e-4)
            at += len(told)


class Alone:
    """Attention of one whole sequence: an image prefix seen both ways, then each position what is before."""

    def __init__(self, prefix: int, length: int) -> None:
        self._seen = torch.ones(length, length, dtype=torch.bool).tril()
        self._seen[:prefix, :prefix] = True

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = (t.transpose(0, 1) for t in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v, attn_mask=self._seen).transpose(0, 1)


def embedded(model: Moondream, inputs: list[Input]) -> Tensor:
    """As the server feeds them, one at a time."""
    rows = []
    for value in inputs:
        match value:
            case Coord(number):
                rows.append(model.region.encode_coord(torch.tensor([number])))
            case Size():
                rows.append(model.region.encode_size(torch.tensor([value])))
            case token:
                rows.append(model.text.embed(torch.tensor([token])))
    return torch.cat(rows)


def test_tiles_of_a_batch_become_what_the_server_makes_of_each_picture() -> None:
    model = new_model()
    crops = torch.randint(0, 256, (2, 3, 56, 56, 3), generator=torch.Generator().manual_seed(1)).byte()
    together = network.image_embeddings(model, crops, (1, 2))
    alone = [model.vision.project(model.vision.encode(one), (1, 2)) for one in crops]
    torch.testing.assert_close(together, torch.stack(alone), rtol=1e-4, atol=1e-5)


# Pictures by hand and by others.


def test_the_samples_of_the_client_are_drawn_by_this_code() -> None:
    assert {path.name for path in samples.SAMPLES.iterdir()} == {*samples.SCENES, *thing_samples.PICTURES}
    for name, scene in samples.SCENES.items():
        drawn = decode_image(encode(draw(scene, *samples.SIZE, seed=0), None), ImageLimits())
        kept = decode_image((samples.SAMPLES / name).read_bytes(), ImageLimits())
        assert np.abs(drawn.astype(int) - kept).max() <= 2, f"{name}: run examples.train_tiny.samples"


def test_the_tokenizer_is_made_of_the_words_of_the_world() -> None:
    pytest.importorskip("tokenizers")
    assert make_tokenizer.build(corpus()) == TOKENIZER.read_text(encoding="utf-8")


def test_somebody_elses_truth_is_what_is_drawn(tmp_path: Path) -> None:
    other_pictures.main(tmp_path, count=8, seed=3)
    folder, seen = Folder(tmp_path), set()
    for index in range(len(folder)):
        picture = folder[index]
        rgb = decode_image(picture.data, ImageLimits())[::4, ::4]
        y, x = np.mgrid[0 : picture.height : 4, 0 : picture.width : 4] + 0.5
        places = np.stack((x.ravel() / picture.width, y.ravel() / picture.height), 1)
        for thing in picture.scene.things:
            paths = picture.outlines[thing]
            colour = np.median(rgb[inside(paths, places).reshape(y.shape)], axis=0)
            assert np.abs(colour - other_pictures.PALETTE[thing.colour]).max() < 25, thing.name
            assert outline_iou(paths, paths, thing.box) == 1
            seen.add(thing.shape)
    assert len(seen) > 5
