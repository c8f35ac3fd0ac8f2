"""Adapters in the plain runtime, which is the specification: mixed, each answers as if it were alone."""

import threading
from collections.abc import Mapping

import pytest
import torch
from random_adapters import empty_stacks, load_all, random_adapter, some_adapters
from storms import Pictures
from tiny import tiny_config, tiny_model

from kestrel_core.loop.step import Kind, PreparedImage, Readout, Running, Sample, Sampling, Span, StepPlan
from kestrel_core.moondream.lora import TARGETS, Adapter, LowRank, Target
from kestrel_core.moondream.model import Moondream
from kestrel_core.runtime.torch_runtime import TorchRuntime

pytestmark = pytest.mark.usefixtures("one_thread")

CONFIGS = {"dense": tiny_config(2), "grouped": tiny_config(2, n_kv_heads=2), "experts": tiny_config(3)}
PREFIX = 5  # BOS and 2 x 2 patches
TOKEN = Readout(Kind.TOKEN)
ALL = Sampling(logprobs=64)
QUESTION = (1, 20, 2, 33, 40, 3)


@pytest.fixture(scope="module", params=CONFIGS.values(), ids=CONFIGS)
def model(request: pytest.FixtureRequest) -> Moondream:
    return tiny_model(request.param, seed=2)


def make(model: Moondream, adapters: Mapping[int, Adapter]) -> TorchRuntime:
    runtime = TorchRuntime(model, 40, 5, stacks=empty_stacks(model.config.text))
    runtime.encode_image = Pictures(model.config, model.text.wte)  # type: ignore[assignment]
    load_all(runtime, adapters)
    return runtime


def prompt(slot: int, adapter: int, key: str | None = "1") -> list[Span]:
    """A question behind a picture, or without one, on pages of its slot."""
    running = Running(slot, list(range(4 * slot, 4 * slot + 4)), ALL, adapter)
    if key is None:
        return [Span(running, 0, 6, QUESTION, None, TOKEN)]
    image = Span(running, 0, PREFIX, None, PreparedImage(key, None, (1, 1)))
    return [image, Span(running, PREFIX, PREFIX + 6, QUESTION, None, TOKEN)]


def answer(runtime: TorchRuntime, prompts: list[list[Span]], num_tokens: int = 4) -> list[list[Sample]]:
    """Samples of each prompt, all of them computed together."""
    said = [[runtime.launch(StepPlan([s for spans in prompts for s in spans])).collect()]]
    for at in range(num_tokens - 1):
        decodes = [
            Span(spans[-1].sequence, spans[-1].stop + at, spans[-1].stop + at + 1, None, None, TOKEN)
            for spans in prompts
        ]
        said.append([runtime.launch(StepPlan(decodes)).collect()])
    return [[samples[spans[0].slot] for [samples] in said] for spans in prompts]


def assert_same(ours: list[Sample], expected: list[Sample]) -> None:
    assert [sample.token for sample in ours] == [sample.token for sample in expected]
    for one, other in zip(ours, expected, strict=True):
        values = [torch.tensor([value for _, value in sorted(sample.top)]) for sample in (one, other)]
        torch.testing.assert_close(*values, atol=5e-5, rtol=5e-5)


def merged(model: Moondream, adapter: Adapter) -> Moondream:
    """A model whose own matrices have been changed: what an adapter stands for. Not for `input_proj`."""
    made = tiny_model(model.config, seed=2)
    for block, targets in zip(made.text.blocks, adapter.blocks, strict=True):
        weights = {"qkv": block.attn.qkv.weight, "proj": block.attn.proj.weight}
        prefix = "expert_" if "expert_fc1" in targets else ""
        weights |= {f"{prefix}fc1": block.mlp.fc1.weight, f"{prefix}fc2": block.mlp.fc2.weight}
        for target, (a, b) in targets.items():
            weights[target].data += b @ a
    return made


def test_an_adapter_computes_what_changed_matrices_compute(model: Moondream) -> None:
    targets: list[Target] = [target for target in TARGETS if target != "input_proj"]
    adapter = random_adapter(model.config.text, 4, targets, seed=1)
    [ours] = answer(make(model, {2: adapter}), [prompt(1, 2)])
    [expected] = answer(make(merged(model, adapter), {}), [prompt(1, 0)])
    assert_same(ours, expected)


def test_every_sequence_of_a_mixed_step_is_answered_as_if_it_were_alone(model: Moondream) -> None:
    """Pictures and prompts without one; one picture under several adapters."""
    runtime = make(model, some_adapters(model.config.text))
    prompts = [
        prompt(1, 2),
        prompt(2, 0),
        prompt(3, 1),
        prompt(4, 2, None),
        prompt(5, 3, "2"),
        prompt(6, 0, None),
    ]
    together = answer(runtime, prompts)
    for spans, said in zip(prompts, together, strict=True):
        [expected] = answer(make(model, some_adapters(model.config.text)), [spans])
        assert_same(said, expected)
    first = [said[0].logprob for said in together[:3]]
    assert len(set(first)) == 3, "the same question about the same picture, under three adapters"


def test_a_sequence_without_adapter_is_computed_as_where_there_are_none(model: Moondream) -> None:
    plain = TorchRuntime(model, 40, 5)
    plain.encode_image = Pictures(model.config, model.text.wte)  # type: ignore[assignment]
    [expected] = answer(plain, [prompt(1, 0)])
    [ours] = answer(make(model, some_adapters(model.config.text)), [prompt(1, 0)])
    assert ours == expected, "to the last bit"


def test_a_smaller_adapter_leaves_nothing_of_a_larger_one_before_it(model: Moondream) -> None:
    text = model.config.text
    small = random_adapter(text, 1, ("qkv",), seed=5)
    runtime = make(model, {1: random_adapter(text, 8, seed=4)})
    load_all(runtime, {1: small})
    [ours] = answer(runtime, [prompt(1, 1)])
    [expected] = answer(make(model, {1: small}), [prompt(1, 1)])
    assert ours == expected


def test_an_adapter_is_loaded_while_steps_use_others(model: Moondream) -> None:
    [expected] = answer(make(model, some_adapters(model.config.text)), [prompt(1, 1)])
    runtime, text = make(model, {1: some_adapters(model.config.text)[1]}), model.config.text
    enough = threading.Event()

    def load() -> None:
        for seed in range(10_000):
            runtime.adapter_loader(2)(random_adapter(text, 1 + seed % 8, seed=seed))
            if enough.is_set():
                break

    worker = threading.Thread(target=load)
    worker.start()
    answers = [answer(runtime, [prompt(1, 1), prompt(2, 0)])[0] for _ in range(5)]
    enough.set()
    worker.join()
    for said in answers:
        assert_same(said, expected)


def test_an_adapter_of_another_shape_does_not_reach_the_places_of_others(model: Moondream) -> None:
    runtime, adapters = make(model, some_adapters(model.config.text)), some_adapters(model.config.text)
    broken = Adapter("broken", 1, [{"qkv": LowRank(torch.zeros(1, 3), torch.zeros(3, 1))}])
    with pytest.raises((RuntimeError, ValueError)):
        runtime.adapter_loader(2)(broken)
    [ours] = answer(runtime, [prompt(1, 3)])
    [expected] = answer(make(model, {3: adapters[3]}), [prompt(1, 3)])
    assert ours == expected
