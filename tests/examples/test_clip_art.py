"""Clip art: what is drawn is cut out of its page; each name is a thing's."""

from pathlib import Path

import numpy as np
import pytest

from examples.train_tiny.clip_art import draw_file
from examples.train_tiny.sources import CLIP_ART, SETS, chosen_of
from kestrel_tools.things.names import nouns

SVG = """<svg xmlns="http://www.w3.org/2000/svg" width="300pt" height="300pt">
<rect x="250" y="300" width="140" height="70" fill="#ff0000"/></svg>"""


def test_a_drawing_is_cut_out_of_its_page(tmp_path: Path) -> None:
    file = tmp_path / "one.svg"
    file.write_text(SVG, encoding="utf-8")
    drawn = draw_file(file, 96, 2)
    assert drawn.shape == (96, 96, 4)
    ys, xs = np.nonzero(drawn[..., 3] >= 128)
    assert (xs.min(), xs.max()) == (2, 93), "as wide as it fits"
    assert abs(ys.min() - 25) <= 1 and abs(ys.max() - 70) <= 1, "half as high, in the middle, and whole"
    assert (drawn[48, 48] == (255, 0, 0, 255)).all()


@pytest.mark.parametrize("name", [CLIP_ART, *(name for name, source in SETS.items() if source.chosen)])
def test_chosen_drawings_are_of_things_and_named_once(name: str) -> None:
    chosen = chosen_of(name)
    assert set(chosen) <= {noun.name for noun in nouns()}
    files = [name for names in chosen.values() for name in names]
    assert len(files) == len(set(files)) >= len(chosen)
