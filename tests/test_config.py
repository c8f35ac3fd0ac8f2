"""`RuntimeConfig`: the same from keywords, from variables and from Triton's parameters."""

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from kestrel_core.config import RuntimeConfig
from kestrel_core.intake.models import MODELS
from kestrel_core.protocol.errors import InvalidRequest


def test_the_defaults_are_those_of_the_contract() -> None:
    config = RuntimeConfig()
    assert (config.model, config.device, config.max_batch_size) == ("moondream3-preview", "cuda", 4)
    assert config.model_path is None
    assert RuntimeConfig.from_environment({}) == RuntimeConfig.from_strings({}) == config


def test_every_option_says_what_it_means() -> None:
    assert all(option.metadata["meaning"] for option in dataclasses.fields(RuntimeConfig))


def test_a_quick_start_puts_captures_off_unless_they_are_required_or_not_wanted() -> None:
    def graphs(cuda_graphs: str, quick_start: bool) -> str:
        return RuntimeConfig(cuda_graphs=cuda_graphs, quick_start=quick_start).graphs

    assert [graphs(choice, True) for choice in ("auto", "off", "required")] == ["lazy", "off", "required"]
    assert [graphs(choice, False) for choice in ("auto", "off", "required")] == ["auto", "off", "required"]


def test_every_option_can_be_a_text() -> None:
    config = RuntimeConfig(
        model="moondream2",
        model_path="weights",
        revision="0a1b",
        tokenizer_path="tokenizer.json",
        weights="random",
        verify_weights=True,
        seed=-3,
        device="cpu",
        dtype="float16",
        runtime="torch",
        flashinfer="off",
        cuda_graphs="required",
        quick_start=True,
        cache_folder="/kept",
        compile="off",
        decode_kernels="early",
        vision_dtype="fp8",
        kv_dtype="fp8",
        vision_attention="ours",
        vision_pacing="slices",
        picture_steps=7,
        quantize="int4",
        scales_path="scales.json",
        skills="count.py:COUNT",
        adapters="adapters",
        adapter_hub=True,
        max_adapters=3,
        max_adapter_rank=24,
        max_batch_size=2,
        max_context=100,
        kv_cache_tokens=1000,
        prefix_cache=False,
        share_pictures=True,
        step_tokens=64,
        max_step_s=7.5,
        max_queue=9,
        max_queue_bytes=99,
        max_prepared_bytes=98,
        priority_s=0.5,
        default_timeout_s=1.5,
        threads=3,
        image_workers=1,
        input_limits="question=5",
        max_image_bytes=7,
        max_image_pixels=8,
        max_image_cost=9,
        max_image_frames=10,
    )
    default = RuntimeConfig()
    texts = {name: str(value) for name, value in dataclasses.asdict(config).items()}
    assert all(getattr(default, name) != getattr(config, name) for name in texts), "an option is not covered"
    assert RuntimeConfig.from_strings(texts) == config
    variables = {f"KESTREL_{name.upper()}": text for name, text in texts.items()}
    assert RuntimeConfig.from_environment({**variables, "KESTREL": "x", "HOME": "y"}) == config


def test_what_is_fixed_wins_over_the_environment_and_an_empty_variable_is_none() -> None:
    variables = {"KESTREL_MODEL": "moondream2", "KESTREL_DEVICE": "", "KESTREL_MAX_QUEUE": "7"}
    config = RuntimeConfig.from_environment(variables, max_queue="8")
    assert (config.model, config.device, config.max_queue) == ("moondream2", "cuda", 8)


def test_the_processes_environment_is_read_when_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KESTREL_MAX_BATCH_SIZE", "13")
    assert RuntimeConfig.from_environment().max_batch_size == 13


@pytest.mark.parametrize(
    ("text", "value"), [("1", True), ("TRUE", True), (" false ", False), ("0", False), ("true", True)]
)
def test_yes_and_no(text: str, value: bool) -> None:
    assert RuntimeConfig.from_strings({"prefix_cache": text}).prefix_cache is value


@pytest.mark.parametrize("text", ["none", "None", ""])
def test_none_is_none_where_there_may_be_none(text: str) -> None:
    assert RuntimeConfig.from_strings({"max_context": text}).max_context is None
    with pytest.raises(InvalidRequest):
        RuntimeConfig.from_strings({"max_queue": text})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"max_batch_size": "four"}, 'max_batch_size is "four"; it must be a whole number'),
        ({"max_context": "1.5"}, 'max_context is "1.5"'),
        ({"prefix_cache": "yes"}, 'prefix_cache is "yes"; it must be true or false'),
        ({"max_batch_size": "0"}, "max_batch_size is 0; it must be more than 0"),
        ({"default_timeout_s": "-1"}, "default_timeout_s is -1.0; it must be more than 0"),
        ({"priority_s": "nan"}, "priority_s is nan"),
        ({"priority_s": "inf"}, "priority_s is inf"),
        ({"dtype": "int8"}, 'dtype is "int8"; it can be auto, float32, bfloat16, float16'),
        ({"weights": "none"}, 'weights is "none"; it can be checkpoint, random'),
        ({"max_batchsize": "4"}, "there is no option max_batchsize; did you mean max_batch_size?"),
        ({"qqqq": "4"}, "there is no option qqqq; known are model, model_path"),
        ({"flashinfer": "on"}, 'flashinfer is "on"; it can be auto, off, required'),
    ],
)
def test_what_cannot_be_is_refused_by_name(values: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidRequest, match=re.escape(message)):
        RuntimeConfig.from_strings(values)


@pytest.mark.parametrize("options", [{"max_queue": -1}, {"step_tokens": 0}, {"dtype": "double"}])
def test_keywords_are_checked_too(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        RuntimeConfig(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_batch_size": 2.5}, "max_batch_size is 2.5; it must be a whole number"),
        ({"max_batch_size": "4"}, "max_batch_size is '4'; it must be a whole number"),
        ({"max_batch_size": True}, "max_batch_size is True; it must be a whole number"),
        ({"max_batch_size": None}, "max_batch_size is None; it must be a whole number"),
        ({"seed": 0.0}, "seed is 0.0; it must be a whole number"),
        ({"prefix_cache": "no"}, "prefix_cache is 'no'; it must be true or false"),
        ({"prefix_cache": 0}, "prefix_cache is 0; it must be true or false"),
        ({"priority_s": "soon"}, "priority_s is 'soon'; it must be a number"),
        ({"priority_s": False}, "priority_s is False; it must be a number"),
        ({"model": 3}, "model is 3; it must be a text"),
        ({"model_path": b"weights"}, "model_path is b'weights'; it must be a text"),
        ({"max_new_token": 3}, "there is no option max_new_token; "),
        ({"max_batchsize": 3}, "there is no option max_batchsize; did you mean max_batch_size?"),
        ({"weights_path": "x"}, "there is no option weights_path; it is called model_path now"),
        ({"max_seq_length": 9}, "there is no option max_seq_length; it is called max_context now"),
    ],
)
def test_a_keyword_of_the_wrong_type_or_name_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest, match=re.escape(message)):
        RuntimeConfig(**options)
    with pytest.raises(InvalidRequest, match=re.escape(message)):
        dataclasses.replace(RuntimeConfig(), **options)


def test_a_bundled_model_brings_its_adapters_unless_others_are_named() -> None:
    own = MODELS["moondream-tiny"].adapters
    assert own is not None
    assert RuntimeConfig(model="moondream-tiny").adapters_folder == own
    assert RuntimeConfig(model="moondream-tiny", adapters="mine").adapters_folder == Path("mine")
    assert RuntimeConfig(model="moondream2").adapters_folder is None
    assert RuntimeConfig(model="moondream-tiny", model_path="other").adapters_folder is None
    assert RuntimeConfig(model="moondream-tiny", weights="random").adapters_folder is None


def test_whole_numbers_are_numbers_and_paths_are_texts() -> None:
    config = RuntimeConfig(priority_s=3, model_path=Path("weights"))  # type: ignore[arg-type]
    assert (config.priority_s, config.model_path) == (3, "weights")


@pytest.mark.parametrize(
    ("old", "new"), [(True, "auto"), (False, "off"), ("true", "auto"), ("0", "off"), ("required", "required")]
)
def test_graphs_may_still_be_switched_by_true_and_false(old: Any, new: str) -> None:
    assert RuntimeConfig.from_strings({"cuda_graphs": str(old)}).cuda_graphs == new
    if isinstance(old, bool):
        assert RuntimeConfig(cuda_graphs=old).cuda_graphs == new  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("KESTREL_MODLE", "there is no variable KESTREL_MODLE; did you mean KESTREL_MODEL?"),
        ("KESTREL_MAX_SEQ_LENGTH", "KESTREL_MAX_SEQ_LENGTH; it is called KESTREL_MAX_CONTEXT now"),
    ],
)
def test_a_variable_nobody_knows_is_refused(name: str, said: str) -> None:
    with pytest.raises(InvalidRequest, match=re.escape(said)):
        RuntimeConfig.from_environment({name: "moondream2"})
    with pytest.raises(InvalidRequest, match=re.escape(said)):
        RuntimeConfig.from_parameters({}, 0, {name: "moondream2"})


@pytest.mark.parametrize(
    "name",
    [
        "KESTREL_SERVICE_HOST",  # Kubernetes', beside a service of that name
        "KESTREL_SERVICE_PORT_HTTP",
        "KESTREL_PORT",
        "KESTREL_PORT_8000_TCP_ADDR",
        "KESTREL_GRPC_SERVICE_HOST",
    ],
)
def test_a_variable_that_others_may_set_is_no_mistake(name: str) -> None:
    assert RuntimeConfig.from_environment({name: "x"}) == RuntimeConfig()


def test_nobody_changes_it_after_the_start() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        RuntimeConfig().max_queue = 3  # type: ignore[misc]


def test_the_environment_wins_over_the_parameters_of_the_triton_model() -> None:
    parameters = {"model": "moondream2", "max_queue": "9", "device": "cpu"}
    environment = {"KESTREL_MAX_QUEUE": "2", "KESTREL_MODEL": "", "PATH": "x"}
    found = RuntimeConfig.from_parameters(parameters, environment=environment)
    assert (found.model, found.max_queue, found.device) == ("moondream2", 2, "cpu")


def test_each_instance_takes_its_own_of_the_devices() -> None:
    parameters = {"devices": "cuda:0, cuda:3"}
    found = [RuntimeConfig.from_parameters(parameters, instance, {}).device for instance in (0, 1)]
    assert found == ["cuda:0", "cuda:3"]
    with pytest.raises(InvalidRequest, match="devices names 2 and this is instance 3"):
        RuntimeConfig.from_parameters(parameters, 2, {})


@pytest.mark.parametrize(
    ("devices", "device"),
    [("cuda:0,cuda:1", "cuda:0"), ("cuda:0,cuda:1", "cpu"), ("cpu,cpu", "cuda"), ("cpu,cuda:1", "cuda")],
)
def test_devices_and_a_device_that_contradicts_them_are_refused(devices: str, device: str) -> None:
    for parameters, environment in (
        ({"devices": devices}, {"KESTREL_DEVICE": device}),
        ({"devices": devices, "device": device}, {}),
    ):
        with pytest.raises(InvalidRequest, match="leave one of them out") as raised:
            RuntimeConfig.from_parameters(parameters, 1, environment)
        assert device in str(raised.value) and devices.replace(",", ", ") in str(raised.value)


@pytest.mark.parametrize(("devices", "device"), [("cuda:0,cuda:3", "cuda"), ("cpu,cpu", "cpu")])
def test_a_device_that_means_all_of_the_devices_leaves_each_instance_its_own(
    devices: str, device: str
) -> None:
    found = [
        RuntimeConfig.from_parameters({"devices": devices}, instance, {"KESTREL_DEVICE": device}).device
        for instance in (0, 1)
    ]
    assert found == devices.split(",")


def test_a_parameter_nobody_knows_is_an_error() -> None:
    with pytest.raises(InvalidRequest, match="there is no option max_que"):
        RuntimeConfig.from_parameters({"max_que": "1"}, 0, {})


def test_requests_to_triton_have_a_deadline_unless_another_or_none_is_given() -> None:
    def served(parameters: dict[str, str], **environment: str) -> float | None:
        return RuntimeConfig.from_parameters(parameters, 0, environment).default_timeout_s

    assert served({}) == 60
    assert served({"default_timeout_s": "5"}) == 5
    assert served({}, KESTREL_DEFAULT_TIMEOUT_S="7.5") == 7.5
    assert served({}, KESTREL_DEFAULT_TIMEOUT_S="none") is None
    assert RuntimeConfig().default_timeout_s is None, "a caller in this process can end its request itself"
