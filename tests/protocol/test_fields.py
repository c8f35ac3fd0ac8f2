"""The one registry of inputs, held against everything that follows it."""

from dataclasses import fields
from pathlib import Path

import pytest

from kestrel_core.protocol.asking import OF_A_REQUEST, Options, QueryOptions
from kestrel_core.protocol.fields import ARGUMENTS, BY_NAME, INPUTS, LATER, SETTINGS
from kestrel_core.protocol.messages import Settings
from kestrel_core.skills.registry import builtin_skills

ROOT = Path(__file__).parents[2]


def test_config_pbtxt_has_every_input_with_its_type_and_shape() -> None:
    model_config_pb2 = pytest.importorskip(
        "tritonclient.grpc.model_config_pb2", reason="no tritonclient here"
    )
    from google.protobuf import text_format

    config = model_config_pb2.ModelConfig()
    text_format.Parse((ROOT / "model_repository/moondream/config.pbtxt").read_text(), config)
    written = {
        tensor.name: (model_config_pb2.DataType.Name(tensor.data_type), tuple(tensor.dims), tensor.optional)
        for tensor in config.input
    }
    assert written == {
        field.name: (f"TYPE_{field.type}", field.dims, field.name != "SKILL") for field in INPUTS
    }
    assert list(written) == [field.name for field in INPUTS], "in the same order, so that both read alike"


def test_settings_and_keywords_are_those_of_the_registry() -> None:
    assert [field.name for field in fields(Settings)] == list(SETTINGS)
    assert Options.__annotations__.keys() - {*OF_A_REQUEST} == SETTINGS.keys()
    assert QueryOptions.__annotations__.keys() - {*OF_A_REQUEST} - SETTINGS.keys() < ARGUMENTS.keys()


def test_every_argument_with_a_tensor_is_taken_by_a_skill() -> None:
    taken = {argument.name for skill in builtin_skills() for argument in skill.arguments}
    assert taken == ARGUMENTS.keys()


def test_nothing_that_is_decided_for_later_has_an_input_yet() -> None:
    assert not {*LATER} & BY_NAME.keys()
