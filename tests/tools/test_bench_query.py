"""One caller's wait: what is asked, of which pictures, and what becomes of the numbers."""

import json
from pathlib import Path

import pytest
import pyvips
from tiny_folder import save_tiny

from kestrel_core.protocol.errors import InvalidRequest
from kestrel_tools.bench.options import Query, width_and_height
from kestrel_tools.bench.parts.query import SIZES, WARM_UP, drawn
from kestrel_tools.bench.results import markdown
from kestrel_tools.commands import main


def test_no_two_pictures_are_equal_and_each_is_drawn_again_as_it_was() -> None:
    made = [drawn(number, (64, 48)) for number in range(50)]
    assert len(set(made)) == 50 and drawn(7, (64, 48)) == made[7]
    for size in ((64, 48), *SIZES):
        image = pyvips.Image.new_from_buffer(drawn(3, size), "")
        assert (image.width, image.height, image.bands) == (*size, 3)


@pytest.mark.parametrize("wrong", [{"requests": 0}, {"tokens": 0}, {"size": (8, 640)}, {"seed": -1}])
def test_what_cannot_be_asked_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidRequest):
        Query(**wrong)  # type: ignore[arg-type]


def test_a_size_is_its_width_and_height() -> None:
    assert width_and_height("640x480") == (640, 480)
    with pytest.raises(ValueError):
        width_and_height("640")


def test_an_engine_is_asked_about_new_pictures_one_it_knows_and_captions(tmp_path: Path) -> None:
    folder, file = save_tiny(tmp_path / "tiny"), tmp_path / "query.json"
    engine = ("--model-path", str(folder), "--device", "cpu", "--json", str(file))
    assert main(["bench", "query", "--requests", "4", "--size", "90x60", "--tokens", "3", *engine]) == 0
    document = json.loads(file.read_text())
    rows = document["measured"]
    assert [row["requests"] for row in rows] == [4, 4, 2, 2]
    assert "90 x 60" in rows[0]["asked"] and "before" in rows[2]["asked"] and "caption" in rows[3]["asked"]
    for row in rows:
        assert 0 < row["least_ms"] <= row["p50_ms"] <= row["p95_ms"] <= row["p99_ms"]
        assert 1 <= row["mean_tokens"] <= (12 if "caption" in row["asked"] else 3)
    assert markdown(document).count("\n| ") == 1 + len(rows)


def test_a_server_is_asked_for_the_same(tmp_path: Path) -> None:
    pytest.importorskip("tritonclient")
    from client.fake_triton import FakeTriton

    server, file = FakeTriton(), tmp_path / "query.json"
    command = ["bench", "query", "--url", server.url, "--requests", "2", "--size", "64x48"]
    try:
        assert main([*command, "--json", str(file)]) == 0
    finally:
        server.stop()
    document = json.loads(file.read_text())
    assert document["config"] is None and len(server.asked) == WARM_UP + 6
    pictures = [request.inputs["IMAGE"][0] for request in server.asked[WARM_UP:]]
    assert len(set(pictures)) == 5, "all are new but the one that was asked about before"
    assert pictures[4] == pictures[3]
