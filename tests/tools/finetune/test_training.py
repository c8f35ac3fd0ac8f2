"""One pass over packed lessons, its gradients, what training comes to, and going on after an interruption."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from lines_to_learn import all_skills, features_of, read, tiny_loaded
from torch import Tensor

from kestrel_core.build import LoadedModel
from kestrel_core.loop.step import Kind
from kestrel_core.moondream.lora import AdapterRows, LowRank
from kestrel_core.runtime.batch import embed_inputs
from kestrel_tools.finetune.features import Features
from kestrel_tools.finetune.forward import hidden_states, loss_of
from kestrel_tools.finetune.lessons import Lesson
from kestrel_tools.finetune.options import FinetuneOptions
from kestrel_tools.finetune.order import passes, split, steps_of_epoch
from kestrel_tools.finetune.packing import grouped, pack
from kestrel_tools.finetune.parameters import TRAINED, Parameters
from kestrel_tools.finetune.training import Trainer, rate_at

pytestmark = pytest.mark.usefixtures("one_thread")

Prepared = tuple[LoadedModel, list[Lesson], Features]


@pytest.fixture(params=[2, 3])
def prepared(request: pytest.FixtureRequest, tmp_path: Path) -> Prepared:
    model = tiny_loaded(request.param)
    data = read(all_skills(tmp_path), model)
    return model, [line.lesson for line in data.lines], features_of(data, model, tmp_path / "features")


def random_parameters(model: LoadedModel, seed: int = 1) -> Parameters:
    """As of an adapter that was trained: B is not 0."""
    parameters = Parameters(model.network.config, 8, model.device, seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in parameters.named():
            if name.endswith(".b"):
                tensor.normal_(0, 0.2, generator=generator)
    return parameters


def alone(model: LoadedModel, lesson: Lesson, features: Features, parameters: Parameters) -> Tensor:
    """Hidden states of a lesson's words, computed by itself, and by the server's own code for adapters."""
    network = model.network
    x = embed_inputs(network, lesson.inputs)
    prefix = 0
    if lesson.picture is not None:
        prefix = network.config.image_prefix_length
        bos = embed_inputs(network, [network.config.tokenizer.bos_id])
        x = torch.cat((bos, features(lesson.picture), x))
    seen = torch.ones(len(x), len(x), dtype=torch.bool).tril()
    seen[:prefix, :prefix] = True

    def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = (part.transpose(0, 1) for part in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen).transpose(0, 1)

    stacks = [
        {
            target: LowRank(*(torch.stack((torch.zeros_like(m), m)) for m in pair))
            for target, pair in block.items()
        }
        for block in parameters.blocks
    ]
    rows = AdapterRows(stacks, torch.ones(len(x), dtype=torch.int32))
    hidden: Tensor = network.text(x, torch.arange(len(x)), attend, rows)
    return hidden[prefix:]


def test_lessons_behind_one_prefix_compute_what_each_does_alone(prepared: Prepared) -> None:
    model, lessons, features = prepared
    parameters = random_parameters(model)
    groups = grouped(lessons)
    assert [len(group.lessons) for group in groups] == [5, 5, 5, 5, 1]
    packed = pack(model.network, groups, features)
    assert len(packed.x) == 4 * model.network.config.image_prefix_length + sum(len(a.inputs) for a in lessons)
    with torch.no_grad():
        words = hidden_states(model.network, packed, parameters)[
            4 * model.network.config.image_prefix_length :
        ]
        for group in groups:
            for lesson in group.lessons:
                mine, words = words[: len(lesson.inputs)], words[len(lesson.inputs) :]
                torch.testing.assert_close(
                    mine, alone(model, lesson, features, parameters), rtol=1e-4, atol=1e-5
                )
    assert not len(words)


def test_blocks_computed_again_give_the_same_gradients(prepared: Prepared) -> None:
    model, lessons, features = prepared
    found = []
    for recompute in (False, True):
        parameters = random_parameters(model)
        packed = pack(model.network, grouped(lessons), features)
        loss_of(
            model.network, hidden_states(model.network, packed, parameters, recompute), packed.reads
        ).total.backward()
        found.append([tensor.grad for _, tensor in parameters.named()])
    for plain, again in zip(*found, strict=True):
        torch.testing.assert_close(plain, again)


def test_gradients_reach_every_target_and_nothing_else(prepared: Prepared) -> None:
    model, lessons, features = prepared
    before = {name: p.detach().clone() for name, p in model.network.named_parameters()}
    parameters = random_parameters(model)
    trainer = Trainer(model.network, parameters, features, FinetuneOptions(Path("x")))
    started = parameters.copy()
    trainer.step(lessons, 1e-3)
    targets = {target for block in parameters.blocks for target in block}
    assert targets == set(TRAINED[model.network.config.generation])
    for name, tensor in parameters.named():
        assert not torch.equal(tensor.detach(), started[name]), name
    for name, p in model.network.named_parameters():
        assert p.grad is None and torch.equal(p, before[name]), name


def test_a_fresh_adapter_changes_nothing(prepared: Prepared) -> None:
    model, lessons, features = prepared
    packed = pack(model.network, grouped(lessons), features)
    fresh = Parameters(model.network.config, 8, model.device)
    with torch.no_grad():
        torch.testing.assert_close(
            hidden_states(model.network, packed, fresh), hidden_states(model.network, packed, None)
        )


def test_the_loss_is_0_where_only_the_wanted_answer_can_be_chosen(prepared: Prepared) -> None:
    """What decoding rules out is ruled out of the loss: of two choices, one is wanted or the other is."""
    model, lessons, features = prepared
    packed = pack(model.network, grouped(lessons), features)
    hidden = hidden_states(model.network, packed, None)
    later = [read for read in packed.reads if read[1].readout.choices]
    if model.network.config.dialog.two_way_objects:
        assert later and all(read[1].readout.kind is Kind.OBJECT for read in later)
        [(at, one)] = later[:1]
        other = one._replace(sample=one.sample._replace(token=one.readout.choices[0], coord=None))
        end = one._replace(sample=one.sample._replace(token=one.readout.choices[1], coord=None))
        both = [float(loss_of(model.network, hidden, [(at, read)]).total) for read in (other, end)]
        assert sum(torch.tensor(both).neg().exp()) == pytest.approx(1.0)
    else:
        assert not later


def test_a_split_divides_no_picture_and_repeats(tmp_path: Path) -> None:
    lines = read(all_skills(tmp_path), tiny_loaded(2)).lines
    one, again, other = (split(lines, 0.4, seed) for seed in (0, 0, 1))
    assert one == again != other
    assert {a.group for a in one.training}.isdisjoint(a.group for a in one.evaluation)
    assert len({a.group for a in one.evaluation}) == 2
    assert split(lines, 0.0, 0).evaluation == []
    assert split(lines[1:2], 0.5, 0).evaluation == []  # one picture is left to train with


def test_an_epoch_sees_every_lesson_once_and_mixes_pictures(prepared: Prepared) -> None:
    _, lessons, _ = prepared
    steps = steps_of_epoch(lessons, 8, 0, 0)
    assert [len(step) for step in steps] == [8, 8, 5]
    assert {id(lesson) for step in steps for lesson in step} == {id(lesson) for lesson in lessons}
    assert all(len({lesson.picture for lesson in step}) > 1 for step in steps[:2])
    assert steps != steps_of_epoch(lessons, 8, 0, 1)


def test_a_large_step_takes_several_passes(prepared: Prepared) -> None:
    model, lessons, _ = prepared
    prefix = model.network.config.image_prefix_length
    several = list(passes(lessons, prefix, 150))
    assert len(several) > 1
    assert [group for groups in several for group in groups] == grouped(lessons)
    assert list(passes(lessons, prefix, 1)) == [[group] for group in grouped(lessons)]


def test_the_rate_rises_and_then_falls_to_nothing() -> None:
    options = FinetuneOptions(Path("x"), lr=1.0, warmup=0.1)
    rates = [rate_at(step, 100, options) for step in range(101)]
    assert rates[:10] == pytest.approx([0.1 * step for step in range(1, 11)])
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert rates[10] == 1.0 and rates[55] == pytest.approx(0.5) and rates[100] == pytest.approx(0.0)
