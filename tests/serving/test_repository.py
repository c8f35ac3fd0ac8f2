"""config.pbtxt is read as Triton reads it, by protobuf's text format."""

from pathlib import Path

import pytest

from kestrel_core.protocol.errors import InvalidRequest, KestrelError
from kestrel_core.triton.repository import read_repository
from kestrel_core.triton.serve import REPOSITORY


def repository(folder: Path, more: str) -> Path:
    (folder / "moondream").mkdir()
    text = (REPOSITORY / "moondream/config.pbtxt").read_text()
    (folder / "moondream/config.pbtxt").write_text(text + more)
    return folder


def test_ours_has_no_parameters_and_one_instance() -> None:
    ours = read_repository(REPOSITORY)
    assert (ours.parameters, ours.num_instances) == ({}, 1)


@pytest.mark.parametrize(
    "more",
    [
        'parameters { key: "model_path" value { string_value: "/a#b" } }',
        'parameters: { key: "model_path", value: { string_value: "/a#b" } }',
        "parameters { value { string_value: '/a#b' } key: 'model_path' }",
        'parameters [ { key: "model_path" value: < string_value: "/a" "#b" > } ]  # "model_path"',
        'parameters {\n  key: "model_path"  # a comment\n  value {\n    string_value: "\\x2fa#b"\n  }\n}',
    ],
)
def test_a_parameter_may_be_written_in_any_of_protobufs_ways(more: str, tmp_path: Path) -> None:
    assert read_repository(repository(tmp_path, more)).parameters == {"model_path": "/a#b"}


def test_every_instance_has_to_have_a_device(tmp_path: Path) -> None:
    folder = repository(tmp_path, 'parameters { key: "devices" value { string_value: "cpu,cpu" } }')
    path = folder / "moondream/config.pbtxt"
    path.write_text(path.read_text().replace("count: 1", "count: 2"))
    assert [config.device for config in read_repository(folder).configs({})] == ["cpu", "cpu"]
    path.write_text(path.read_text().replace("count: 2", "count: 3"))
    with pytest.raises(InvalidRequest, match="devices names 2 and this is instance 3"):
        read_repository(folder).configs({})


def test_a_file_that_cannot_be_parsed_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"config.pbtxt cannot be read: \d+:\d+ : "):
        read_repository(repository(tmp_path, 'parameters { key: "model }'))


def test_a_folder_without_our_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KestrelError, match="is no model repository of ours"):
        read_repository(tmp_path)
