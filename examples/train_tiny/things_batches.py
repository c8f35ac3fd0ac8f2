"""Training batches of the wider world: things, print and charts, and pictures of the small world among them.

A batch is of one sort, since charts have many lines and scenes have many sprites, and each takes a pass.
"""

from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from random import Random

from kestrel_core.moondream.config import MoondreamConfig
from kestrel_tools.scenes import render
from kestrel_tools.scenes import world as shapes
from kestrel_tools.things import paint
from kestrel_tools.things.atlas import Atlas, open_atlas
from kestrel_tools.things.cards.draw import draw_cards
from kestrel_tools.things.charts.draw import draw_chart
from kestrel_tools.things.compose import CROWDED, USUAL, draw_scene
from kestrel_tools.things.language import choices, choose, facts, kinds, places, relations, targets
from kestrel_tools.things.language.fact import Fact, caption
from kestrel_tools.things.language.pages.facts import page_caption
from kestrel_tools.things.language.printed import facts as print_facts
from kestrel_tools.things.language.rewording import reworded
from kestrel_tools.things.language.traits import facts as traits
from kestrel_tools.things.lettering import everyday_text
from kestrel_tools.things.pages.draw import draw_page
from kestrel_tools.things.pictures import outline_of
from kestrel_tools.things.scene import MOST_ITEMS, Item, Scene, widened

from .batches import (
    LENGTH,
    TALKS,
    Batch,
    draw_aspect,
    draw_scenes,
    draw_tiling,
    fill,
    filled,
    lay,
    seen_pixels,
    shape_task,
    short_talk,
)
from .restyle import with_other_styles
from .teacher import Task, Teacher

# Questions; lists and short captions; captions and outlines. Sixteen tasks on average, with those that are
# drawn for what room is left.
ORDER = ("long", "short", "short", "middle", "short", "short", "short", "middle", "short", "short", "long")
LONGEST = 192  # positions: five outlines of 37
SORTS = {"things": 0.36, "cards": 0.11, "pages": 0.12, "print": 0.1, "charts": 0.17, "shapes": 0.14}
CROWDS = 0.55  # of the scenes of things
VARIOUS = 0.5  # of the charts look as those of the score never do
LABELLED_SO = 0.65  # of the charts, with words of no family: small print is the hardest to spell
# Things that are nearly below each other are named in either order: a model that is sure which comes first,
# and mistakes it, goes on to the right of the one it named and leaves the other out.
LOOSELY = 0.03  # of the picture's width
AS_BEFORE = 0.5  # of what is asked about shapes alone, in the words of the small world
# Asked more often than in the score: a model whose captions named everything, and told where it is, knew no
# better than a coin which bar is higher, and mistook what is beside what. It had seldom been asked.
ASKED = choose.shares_of(
    {
        facts.listing: 3.2,
        facts.count: 2.1,
        facts.count_of_kind: 4.0,
        relations.relation: 1.5,
        relations.nearest: 5.0,
        relations.ordinal: 2.0,
        places.beside: 5.0,
        places.all_beside: 3.0,
        places.parts: 1.5,
        places.between: 6.0,
        choices.either: 1.3,
        kinds.kinds: 1.5,
        kinds.by_colour: 1.5,
        print_facts.about_print: 1.6,
        facts.read: 1.4,
        traits.trait: 6.0,
    },
    {"more": 2.5, "less": 2.5, "which more": 2.5, "largest": 2.0, "smallest": 2.0},
    besides=True,
)

# Of the direct questions, how many there are of what is there more than once: in crowds a model counted 97 %
# of what is there once rightly, 85 % of what is there twice, and 69 % of what is there three times or more.
SEVERAL = 0.06

# Easy batches (one tile, few things) become rare over these steps.
EASY_STEPS = 3000
EASY_ITEMS = 3
# Reading is the slowest to be learnt, so some pictures have little but print.
BESIDE_PRINT = 1
PRINTED = (0, 35, 40, 25)
MOST_OUTLINED = 5


@cache
def training_atlas(folder: Path, seed: int) -> Atlas:
    """Opened once, before workers are forked, which then share it. Each seed has other styles."""
    seen = open_atlas(folder).part("things")
    sprites = with_other_styles(seen.sprites, seed=seed)
    _ = sprites.means  # computed here, or each worker would do it for itself
    return Atlas(sprites, seen.fonts)


def make_batch(
    step: int, seed: int, size: int, config: MoondreamConfig, teacher: Teacher, folder: Path
) -> Batch:
    rng, atlas = Random(f"things {seed} {step}"), training_atlas(folder, seed)
    easy = rng.random() > step / EASY_STEPS
    tiling = (1, 1) if easy else draw_tiling(rng)
    zoom = rng.choices((1.0, 0.7, 1.25), (70, 24, 6))[0]
    [sort] = rng.choices(tuple(SORTS), tuple(SORTS.values()))
    if sort == "shapes":
        small = draw_scenes(rng, tiling, zoom, size, config, EASY_ITEMS if easy else 8)
        scenes, arrays = [widened(scene) for scene in small], render.scene_arrays(small)
        draws = [
            partial(draw_shape_task, small=alone, scene=scene, teacher=teacher, atlas=atlas)
            for alone, scene in zip(small, scenes, strict=True)
        ]
    else:
        pixels = seen_pixels(tiling, zoom, config)
        scenes = [
            new_scene(rng, atlas, sort, draw_aspect(rng, tiling), pixels, EASY_ITEMS if easy else MOST_ITEMS)
            for _ in range(size)
        ]
        arrays = paint.scene_arrays(scenes, atlas.fonts)
        draws = [partial(draw_task, scene=scene, teacher=teacher, atlas=atlas) for scene in scenes]
    rows = []
    for index, draw in enumerate(draws):
        alone = [short_talk(rng, teacher, False)] if index % TALKS == 0 else []
        rows.append(fill(rng, draw, ORDER, alone))
    return Batch(tiling, zoom, arrays, lay(rows, LENGTH, config), filled(rows))


def new_scene(
    rng: Random, atlas: Atlas, sort: str, aspect: float, pixels: tuple[int, int], most: int
) -> Scene:
    while sort == "charts":
        chart = draw_chart(rng, atlas, aspect, pixels, LABELLED_SO, VARIOUS)
        if chart is not None:
            return chart
        if rng.random() < 0.2:  # long pictures have little room for labels
            break
    if sort == "cards" and (cards := draw_cards(rng, atlas, aspect, pixels)) is not None:
        return cards
    if sort == "pages" and (page := draw_page(rng, atlas, aspect, pixels)) is not None:
        return page
    if sort == "print":
        return draw_scene(rng, atlas, aspect, pixels, BESIDE_PRINT, PRINTED, words=everyday_text)
    mixture = CROWDED if most > EASY_ITEMS and rng.random() < CROWDS else USUAL
    return draw_scene(rng, atlas, aspect, pixels, most, mixture=mixture, words=everyday_text)


def named_loosely(rng: Random, scene: Scene) -> Scene:
    if len(scene.items) < 2 or scene.row_by_row:
        return scene
    order = sorted(scene.items, key=lambda item: item.centre[0] + rng.gauss(0, LOOSELY))
    return replace(scene, items=tuple(order))


def draw_shape_task(
    rng: Random, sort: str, small: shapes.Scene, scene: Scene, teacher: Teacher, atlas: Atlas
) -> Task | None:
    """In the words of either world; small talk is the wider world's alone, which says more of itself."""
    if rng.random() < AS_BEFORE:
        task = shape_task(rng, sort, small, teacher)
        if task is not None and task.kind != "talk" and task.length <= LONGEST:
            return task
    return draw_task(rng, sort, scene, teacher, atlas)


def draw_task(rng: Random, sort: str, scene: Scene, teacher: Teacher, atlas: Atlas) -> Task | None:
    task = {"short": _short, "middle": _middle, "long": _long}[sort](rng, scene, teacher, atlas)
    return task if task is not None and task.length <= LONGEST else None


def _short(rng: Random, scene: Scene, teacher: Teacher, atlas: Atlas) -> Task | None:
    kind = rng.random()
    if kind < (0.6 if scene.chart is not None else 0.74):
        return teacher.query(rng, _asked(rng, scene))
    if kind < 0.8:
        spatial = choose.spatial_fact(rng, scene)
        return teacher.query(rng, reworded(rng, spatial[0]), refs=spatial[1]) if spatial else None
    if kind < 0.87:
        return teacher.point(*targets.target(rng, scene))
    if kind < 0.96:
        return teacher.detect(*targets.target(rng, scene))
    return short_talk(rng, teacher, True, 28)


def _middle(rng: Random, scene: Scene, teacher: Teacher, atlas: Atlas) -> Task | None:
    kind = rng.random()
    if kind < 0.14:
        return teacher.detect(*targets.target(rng, scene))
    if kind < 0.21:
        return teacher.point(*targets.target(rng, scene))
    if kind < 0.54:
        return teacher.query(rng, reworded(rng, choose.fact(rng, scene, ASKED)), reasoning=True)
    if kind < 0.86:
        return _captioned(rng, scene, "short", teacher)
    return teacher.query(rng, _asked(rng, scene))


def _asked(rng: Random, scene: Scene) -> Fact:
    several = facts.count_several(rng, scene) if rng.random() < SEVERAL else None
    return reworded(rng, several or choose.fact(rng, named_loosely(rng, scene), ASKED))


def _long(rng: Random, scene: Scene, teacher: Teacher, atlas: Atlas) -> Task | None:
    kind = rng.random()
    if kind < 0.32:
        return _captioned(rng, scene, "normal", teacher)
    if kind < 0.54:
        return _captioned(rng, scene, "long", teacher)
    if kind < 0.79:
        return _outlined(rng, scene, teacher, atlas)
    if kind < 0.88:
        return teacher.query(rng, reworded(rng, choose.fact(rng, scene)), reasoning=True)
    return teacher.detect(rng.choice(targets.ALL), scene.items or scene.lines) if not scene.chart else None


def _captioned(rng: Random, scene: Scene, length: str, teacher: Teacher) -> Task:
    scene = named_loosely(rng, scene)
    text = caption(scene, length) if scene.page is None else page_caption(scene, length)
    return teacher.captioned(length, text, scene.items)


def _outlined(rng: Random, scene: Scene, teacher: Teacher, atlas: Atlas) -> Task | None:
    """Outlines are of things and shapes; print and bars have none."""
    words, found = targets.target(rng, scene)
    items = [one for one in found if isinstance(one, Item)]
    if len(items) < len(found) or len(items) > MOST_OUTLINED:
        return None
    return teacher.outlined(words, [(item, outline_of(item, scene, atlas)) for item in items])
