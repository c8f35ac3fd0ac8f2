"""What is asked about a thing that its kind is said of: what is left of the animal, what colour the fruit is.

Only where there is one thing of that kind. No torch.
"""

from collections.abc import Callable
from random import Random

from kestrel_tools.things.language import places, questions
from kestrel_tools.things.language.fact import Fact, between_places, place, yes_no
from kestrel_tools.things.language.relations import RELATIONS, holds
from kestrel_tools.things.language.wanted import of_kind, only
from kestrel_tools.things.scene import Item, Scene


def called(rng: Random, scene: Scene) -> Fact | None:
    """One of the questions about a thing that its kind tells from the others."""
    if len(scene.items) < 2:
        return None
    item = rng.choice(scene.items)
    kinds = [kind for kind in item.known_as.kinds if kind != "shape"]
    found = of_kind(scene, rng.choice(kinds)) if kinds else None
    if found is None or len(found.items) != 1:
        return None
    [maker] = rng.choices(tuple(MAKERS), tuple(MAKERS.values()))
    return maker(rng, scene, f"the {found.one}", item)


def _colour(rng: Random, scene: Scene, the: str, item: Item) -> Fact | None:
    return _told(rng, "colour", the, item, item.colour, "") if item.colour else None


def _size(rng: Random, scene: Scene, the: str, item: Item) -> Fact | None:
    return _told(rng, "size", the, item, item.size, "") if item.size else None


def _place(rng: Random, scene: Scene, the: str, item: Item) -> Fact | None:
    if between_places(item):
        return None
    return _told(rng, "where", the, item, place(item), "at the ")._replace(kind="place")


def _told(rng: Random, kind: str, the: str, item: Item, answer: str, article: str) -> Fact:
    said = f"{the[0].upper()}{the[1:]} is {article}{answer}."
    return Fact(kind, questions.asked(rng, kind, the), answer, said, ((the, (item,)),))


def _beside(rng: Random, scene: Scene, the: str, item: Item) -> Fact | None:
    which = rng.choice(tuple(places.BESIDE))
    others = [other for other in scene.items if other is not item]
    near = places.neighbour(scene, item, which, others, True)
    if near is None or (not near and rng.random() > places.NOTHING):
        return None
    question = places.asked(rng, "neighbour", rng.choice(places.BESIDE[which]), the)
    if not near:
        return Fact("beside", question, "nothing", evidence=((the, (item,)),))
    name = near[0].name
    return Fact("beside", question, name, evidence=((the, (item,)), (f"the {name}", near)))


def _relation(rng: Random, scene: Scene, the: str, item: Item) -> Fact | None:
    other = only(rng, scene)
    if other is None or other[1] is item:
        return None
    which = rng.choice(tuple(RELATIONS))
    true = holds(which, item, other[1])
    if true is None:
        return None
    second = f"the {other[0]}"
    question = questions.asked(rng, "relation", the, rng.choice(RELATIONS[which]), second)
    return Fact("relation", question, yes_no(true), evidence=((the, (item,)), (second, (other[1],))))


MAKERS: dict[Callable[[Random, Scene, str, Item], Fact | None], float] = {
    _beside: 4,
    _relation: 2,
    _colour: 2,
    _place: 2,
    _size: 0.5,
}
WEIGHTS: dict[Callable[[Random, Scene], Fact | None], float] = {called: 2.0}
