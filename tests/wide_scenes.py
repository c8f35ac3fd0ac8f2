"""Random scenes of all the things there are, for questions that few scenes allow, and who asks them."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from random import Random
from types import ModuleType
from typing import Any

import pytest

from kestrel_tools.scenes import world as shapes
from kestrel_tools.things.atlas import Atlas, Sprites
from kestrel_tools.things.compose import CROWDED, LINES, USUAL, Mixture, draw_scene
from kestrel_tools.things.language import questions, spelling
from kestrel_tools.things.language.fact import Fact
from kestrel_tools.things.names import KINDS, NUMBERS, nouns, plural
from kestrel_tools.things.scene import Item, Scene, widened
from tests.small_atlas import small_atlas

Maker = Callable[[Random, Scene], Fact | None]
PRINTED = (0, 35, 40, 25)  # as the training draws its scenes of print
HERDS = Mixture((0, 1, 2, 3, 4, 4, 4, 3, 3, 2, 1, 1, 1), {0.75: 1, 0.9: 1}, 0.5)
LEFT_OVER = re.compile(r"[\[\]|<>{}]| ,|  \w+ \?")


@cache
def wide_atlas(names: tuple[str, ...] = ()) -> Atlas:
    """Those things, or all, each in four colours and one that has no name: blobs all of them."""
    small = small_atlas()
    names = names or tuple(noun.name for noun in nouns())
    looks = [0, 1, 2, 3, 7] * len(names)
    sprites = small.sprites
    return Atlas(
        Sprites(
            tuple(name for name in names for _ in range(5)),
            ("mine",) * len(looks),
            tuple(sprites.colours[look] for look in looks),
            *(part[looks] for part in (sprites.pixels, sprites.hulls, sprites.outlines, sprites.anchors)),
        ),
        small.fonts,
    )


@cache
def wide_scenes(
    count: int,
    names: tuple[str, ...] = (),
    mixture: str = "usual",
    lines: Sequence[int] = LINES,
    most: int = 12,
) -> tuple[Scene, ...]:
    """So many, and a fifth as many of shapes alone."""
    rng, atlas = Random(f"{names} {mixture}"), wide_atlas(names)
    mixed = {"usual": USUAL, "crowded": CROWDED, "herds": HERDS}[mixture]
    found = [
        draw_scene(rng, atlas, rng.uniform(0.6, 1.7), (252, 252), most, lines, mixed) for _ in range(count)
    ]
    return (*found, *(widened(shapes.draw_scene(rng, 1.2)) for _ in range(count // 5)))


def made_of(maker: Maker, scenes: Sequence[Scene], each: int = 3) -> Iterator[tuple[Scene, Fact]]:
    """What is asked of them, none of it with a bracket or a brace left over."""
    rng = Random(maker.__name__)
    for scene in scenes:
        for _ in range(each):
            if (found := maker(rng, scene)) is not None:
                assert found.question.strip() and found.answer, found
                assert not LEFT_OVER.search(found.question), found.question
                assert found.kind != "count" or len(found.evidence[0][1]) == int(found.answer), found
                yield scene, found


class Heard:
    """What was asked last: its kind, and the words that were put into it."""

    kind: str = ""
    subjects: tuple[str, ...] = ()


def heard(monkeypatch: pytest.MonkeyPatch, *modules: ModuleType) -> Heard:
    """Told by the modules whenever they ask; nobody mistypes then."""
    last = Heard()

    def listen(rng: Random, kind: str, *subjects: str, **more: Any) -> str:
        last.kind, last.subjects = kind, subjects
        return questions.asked(rng, kind, *subjects, **more)

    monkeypatch.setattr(spelling, "mistyped", lambda rng, question: question)
    for module in modules:
        monkeypatch.setattr(module, "asked_of", listen)
    return last


@cache
def meant() -> dict[str, tuple[str, str]]:
    """What the words for several things mean: a noun or a kind, and which."""
    found = {many: ("kind", kind) for kind, (_, many) in KINDS.items()}
    found |= {"shapes": ("kind", "shape")} | {plural(shape): ("noun", shape) for shape in shapes.SHAPES}
    return found | {plural(word): ("noun", n.name) for n in nouns() for word in (*n.also[::-1], n.name)}


def those(scene: Scene, many: str) -> list[Item]:
    """The items that "small red dogs" are, as anybody would look for them."""
    words, asked_for = many, []
    while words not in meant():
        adjective, _, words = words.partition(" ")
        asked_for.append(adjective)
    sort, name = meant()[words]
    items = [i for i in scene.items if (i.noun == name if sort == "noun" else name in i.known_as.kinds)]
    assert not any(name in item.known_as.arguably for item in scene.items), f"{many} is disputed"
    return [item for item in items if all(word in (item.colour, item.size) for word in asked_for)]


def number_in(words: str) -> int:
    return int(words) if words.isdigit() else NUMBERS.index(words)
