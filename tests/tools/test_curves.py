"""Curves as an SVG that a browser can show."""

from pathlib import Path
from xml.etree import ElementTree

from kestrel_tools.curves import write_curves

SVG = "{http://www.w3.org/2000/svg}"


def test_every_curve_stands_within_the_picture_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "curves.svg"
    write_curves(path, {"training": [(0, 4.2), (10, 0.3)], "a < b": [(5, 1.0), (10, 0.031)]}, "steps")
    root = ElementTree.parse(path).getroot()
    lines = [line.attrib["points"].split() for line in root.iter(f"{SVG}polyline")]
    points = [tuple(map(float, point.split(","))) for line in lines for point in line]
    assert len(lines) == 2 and len(points) == 4
    assert all(0 <= x <= 800 and 0 <= y <= 420 for x, y in points)
    assert points[0][1] < points[1][1]  # a smaller loss is further down
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert {"training", "a < b", "steps, 0 to 10", "0.02", "5"} <= set(texts)


def test_a_curve_that_stays_as_it_is_can_be_drawn(tmp_path: Path) -> None:
    write_curves(tmp_path / "flat.svg", {"flat": [(1, 2.0), (2, 2.0)]}, "steps")
    ElementTree.parse(tmp_path / "flat.svg")


def test_a_run_that_goes_on_from_another_has_the_whole_width(tmp_path: Path) -> None:
    write_curves(tmp_path / "on.svg", {"token": [(116_450, 0.2), (131_684, 0.06)]}, "steps")
    root = ElementTree.parse(tmp_path / "on.svg").getroot()
    [line] = [line.attrib["points"].split() for line in root.iter(f"{SVG}polyline")]
    assert [float(point.split(",")[0]) for point in line] == [50, 750]
    assert "steps, 116450 to 131684" in [text.text for text in root.iter(f"{SVG}text")]


def test_one_point_can_be_drawn(tmp_path: Path) -> None:
    write_curves(tmp_path / "one.svg", {"token": [(50, 0.2)]}, "steps")
    ElementTree.parse(tmp_path / "one.svg")


def test_nothing_is_drawn_of_nothing(tmp_path: Path) -> None:
    write_curves(tmp_path / "none.svg", {"none": []}, "steps")
    assert not (tmp_path / "none.svg").exists()
