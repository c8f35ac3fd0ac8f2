"""Which requests a picture of the wider world gets, and their true answers. No model."""

from collections.abc import Mapping
from dataclasses import replace
from random import Random

from kestrel_core.loop.step import Coord, Size
from kestrel_tools.scenes.asking import Asked, objects, spatial_ref
from kestrel_tools.scenes.phrases import sentence_of
from kestrel_tools.scenes.world import Boxed
from kestrel_tools.things.language import choose, facts, targets
from kestrel_tools.things.language.charts import facts as chart_facts

from .language.fact import Fact, caption
from .language.pages.facts import page_caption
from .language.questions import asked
from .language.rewording import reworded
from .language.talk import talk
from .language.wanted import wanted
from .scene import Item, Scene

MOST_NAMED = 3
CHART_KINDS = ("largest", "smallest", "value", "value")
WIDE_QUESTIONS = 8


def scene_requests(rng: Random, scene: Scene, sets: Mapping[Boxed, str]) -> list[Asked]:
    """About fifteen requests, of every kind."""
    requests = _about_chart(rng, scene) if scene.chart is not None else _about_things(rng, scene, sets)
    requests += [_caption(scene, length) for length in ("short", "normal", "long")]
    requests += [objects(skill, *targets.target(rng, scene)) for skill in ("detect", "detect", "point")]
    requests.append(_absent(rng, scene))
    if rng.random() < 0.25:
        has_picture = rng.random() < 0.7
        kind, question, answer = talk(rng, has_picture)
        requests.append(Asked(kind, "query", {"question": question}, answer, has_picture=has_picture))
    return requests


def wide_requests(rng: Random, scene: Scene) -> list[Asked]:
    """Questions of all kinds that training asks, put in other words; a caption and something to find."""
    requests = [_wide(rng, scene) for _ in range(WIDE_QUESTIONS)]
    requests.append(_caption(scene, rng.choice(("short", "normal", "long"))))
    requests.append(objects("detect", *targets.target(rng, scene)))
    return requests


def _wide(rng: Random, scene: Scene) -> Asked:
    fact = reworded(rng, choose.fact(rng, scene, choose.WIDE))
    return Asked(fact.kind, "query", {"question": fact.question}, fact.answer, about=_sort(scene))


def _sort(scene: Scene) -> str:
    found = {"pages": scene.page, "cards": scene.cards, "charts": scene.chart}
    return next((sort for sort, part in found.items() if part is not None), "things")


def _about_chart(rng: Random, scene: Scene) -> list[Asked]:
    found = [chart_facts.fact_of(rng, kind, scene) for kind in CHART_KINDS]
    return [_query(rng, fact) for fact in (*found, *(choose.fact(rng, scene) for _ in range(2)))]


def _about_things(rng: Random, scene: Scene, sets: Mapping[Boxed, str]) -> list[Asked]:
    requests = [_query(rng, choose.fact(rng, scene)) for _ in range(4)]
    requests += [
        _naming(rng, item, sets) for item in rng.sample(scene.items, min(MOST_NAMED, len(scene.items)))
    ]
    if scene.lines and (read := facts.read(rng, scene)) is not None:
        requests.append(replace(_query(rng, read), texts=tuple(line.text for line in scene.lines)))
    count = facts.count(rng, scene)
    thought = {"question": count.question, "reasoning": True}
    requests.append(Asked("reasoning", "query", thought, count.answer, count.evidence[0][1]))
    requests.append(objects("detect", rng.choice(targets.ALL), scene.items or scene.lines))
    outlined = wanted(rng, scene, 0.9)
    if 0 < len(outlined.items) <= 2:
        requests.append(objects("segment", outlined.one, outlined.items))
    return requests


def _naming(rng: Random, item: Item, sets: Mapping[Boxed, str]) -> Asked:
    x_min, y_min, x_max, y_max = item.box
    (x, y), size = item.centre, Size(x_max - x_min, y_max - y_min)
    arguments = {"question": asked(rng, "this"), "spatial_refs": [spatial_ref((Coord(x), Coord(y), size))]}
    return Asked("naming", "query", arguments, item.name, drawn_by=sets.get(item, ""))


def _query(rng: Random, fact: Fact) -> Asked:
    if fact.sentence and rng.random() < 0.1 and not fact.kind.startswith("chart"):
        return Asked(fact.kind, "query", {"question": sentence_of(rng, fact.question)}, fact.sentence)
    return Asked(fact.kind, "query", {"question": fact.question}, fact.answer)


def _caption(scene: Scene, length: str) -> Asked:
    names = tuple(item.name for item in scene.items)
    texts = tuple(line.text for line in scene.lines)
    kind = {"charts": "chart caption", "pages": "page caption"}.get(_sort(scene), f"caption {length}")
    text = caption(scene, length) if scene.page is None else page_caption(scene, length)
    return Asked(kind, "caption", {"length": length}, text, scene.items, names=names, texts=texts)


def _absent(rng: Random, scene: Scene) -> Asked:
    for _ in range(20):
        found = wanted(rng, scene, 0.0)
        if not found.items:
            return objects(rng.choice(("detect", "point", "segment")), found.one, ())
    return objects("detect", "bridge", ())
