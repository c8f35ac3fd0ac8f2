"""`kestrel quantize` as it is called, and what an engine makes of its file."""

import json
from pathlib import Path

import pytest
from tiny_folder import save_tiny

from kestrel_core.build import open_model
from kestrel_core.config import RuntimeConfig
from kestrel_core.moondream.scales import measured_layers, read_scales
from kestrel_tools.bench.requests.charts import draw_chart
from kestrel_tools.commands import main

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("generation", [2, 3])
def test_the_scales_of_a_checkpoint_are_written_beside_it(
    generation: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, pictures = save_tiny(tmp_path / "model", generation), tmp_path / "pictures"
    pictures.mkdir()
    (pictures / "chart.png").write_bytes(draw_chart(3))
    (pictures / "broken.png").write_bytes(b"no picture")
    (pictures / "notes.txt").write_text("no picture either")
    assert main(["quantize", str(folder), "--pictures", str(pictures), "--device", "cpu"]) == 0
    told = capsys.readouterr().out
    assert "broken.png is left out" in told and "vision in float8 is off by" in told
    network = open_model(RuntimeConfig(model_path=str(folder), device="cpu")).network
    scales = read_scales(folder / "kestrel_scales.json", network)
    kept = {f"text.blocks.{layer}.attn.{kind}" for layer in range(len(network.text.blocks)) for kind in "kv"}
    assert scales.pictures == 1 and set(scales.largest) == set(dict(measured_layers(network))) | kept


def test_without_pictures_some_are_drawn(tmp_path: Path) -> None:
    folder, out = save_tiny(tmp_path / "model"), tmp_path / "scales.json"
    assert main(["quantize", str(folder), "--count", "2", "--out", str(out), "--device", "cpu"]) == 0
    assert json.loads(out.read_text())["pictures"] == 2


def test_mistakes_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    folder = save_tiny(tmp_path / "model")
    for arguments, told in (
        (["moondream9"], 'there is no model "moondream9"'),
        ([str(folder), "--pictures", str(tmp_path / "nowhere")], "is not a folder"),
        ([str(folder), "--pictures", str(empty)], "has no picture that can be read"),
        ([str(folder), "--out", str(tmp_path / "nowhere" / "scales.json")], "there is no such folder"),
        ([str(folder), "--out", str(empty)], "it is a folder"),
        ([str(folder), "--out", "x" * 300], "x cannot be written"),
        ([str(folder), "--out", f"{'x' * 300}/scales.json"], "there is no such folder"),
        ([str(folder), "--count", "0"], "there must be a picture"),
    ):
        assert main(["quantize", *arguments, "--device", "cpu"]) == 2
        assert told in capsys.readouterr().err
