"""What may be asked about what things are like and what they are for: which one flies, what cuts hair.

Nothing is asked where people would differ on one of the things that it is asked of. No torch.
"""

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from kestrel_tools.scenes.world import Boxed
from kestrel_tools.things.language.fact import Fact, between_places, is_are, names_of, place
from kestrel_tools.things.language.wanted import of_kind, of_noun
from kestrel_tools.things.names import KINDS, is_plural
from kestrel_tools.things.scene import Item, Scene

from .sentences import asked, finished, fits, label_of
from .table import TRAITS, TRAITS_OF, Form, Trait, group_of

CONFINE = 0.4  # of the questions that may be confined to a kind
ABSENT = 0.12  # of the questions about what nothing there has
NEAR = 0.7  # of these, about what something alike has
ONLY = 0.12  # of the questions where one of several has it
OF_IT = 0.7  # of the questions about a picture with one thing
NOT_ALL = 0.35  # of the scenes where not all have it
MOST_LACKING = 3
TRIES = 5
THIS = ("this", "it", "this thing", "the thing in the picture", "this one")


class Pool(NamedTuple):
    """The traits that are asked about, those of each thing, and how often words of their own are used."""

    traits: tuple[Trait, ...]
    of_thing: dict[str, tuple[tuple[Trait, ...], tuple[float, ...]]]
    in_other_words: float


SCORED = Pool(TRAITS, TRAITS_OF, 0.35)


class Found(NamedTuple):
    """A trait, the kind that is asked about, all its things in the scene, and those that have the trait."""

    trait: Trait
    kind: str
    among: tuple[Item, ...]
    having: tuple[Item, ...]

    @property
    def lacking(self) -> tuple[Item, ...]:
        return tuple(item for item in self.among if not self.trait.has(item.noun))

    def form(self, rng: Random, frame: str) -> Form | None:
        """A form that can be asked so. A pet is not called an animal that is a pet, so of animals alone it is
        not asked with that word: other things may be pets to some.
        """
        forms = [form for form in self.trait.forms if not (self.kind and form.kind == "one")]
        forms = [form for form in forms if fits(form, frame)]
        return rng.choice(forms) if forms else None

    def asked(self, rng: Random, frame: str, form: Form) -> str:
        return asked(rng, frame, form, self.kind, sort=self.trait.sort)

    def shown(self, form: Form) -> tuple[tuple[str, tuple[Boxed, ...]], ...]:
        return ((label_of(form, self.kind), self.having),)


def trait(rng: Random, scene: Scene, pool: Pool = SCORED) -> Fact | None:
    """One of the questions about traits that the scene allows."""
    if not scene.items:
        return None
    [maker] = rng.choices(CHOICES, WEIGHTS)
    if len(scene.items) == 1 and rng.random() < OF_IT:
        maker = is_it
    for _ in range(TRIES):
        found = maker(rng, scene, pool)
        if found is not None:
            return found
    return None


def which(rng: Random, scene: Scene, pool: Pool = SCORED) -> Fact | None:
    """Which things have it, or nothing."""
    found = _found(rng, scene, rng.random() > ABSENT, pool)
    form = found and found.form(rng, "one")
    if found is None or form is None:
        return None
    trait, kind, among, having = found
    if not kind and trait.which and rng.random() < pool.in_other_words:
        question = finished(rng, rng.choice(trait.which))
    elif len(having) == 1 and len(among) > 2 and fits(form, "only one") and rng.random() < ONLY:
        question = found.asked(rng, "only one", form)
    else:
        question = found.asked(rng, ("none", "one", "many")[min(len(having), 2)], form)
    answer = names_of(having) or ("none" if kind else "nothing")
    sentence = f"It is the {answer}." if len(having) == 1 and not is_plural(answer) else ""
    return Fact("trait", question, answer, sentence, found.shown(form))


def how_many(rng: Random, scene: Scene, pool: Pool = SCORED) -> Fact | None:
    found = _found(rng, scene, rng.random() > ABSENT, pool)
    form = found and found.form(rng, "count")
    if found is None or form is None:
        return None
    question = found.asked(rng, "count", form)
    return Fact("count", question, str(len(found.having)), evidence=found.shown(form))


def whether_any(rng: Random, scene: Scene, pool: Pool = SCORED) -> Fact | None:
    found = _found(rng, scene, rng.random() < 0.5, pool)
    form = found and found.form(rng, "any")
    if found is None or form is None:
        return None
    trait, kind, _, having = found
    if not kind and trait.whether and rng.random() < pool.in_other_words:
        question = finished(rng, rng.choice(trait.whether))
    else:
        question = found.asked(rng, "any", form)
    sentence = f"Yes, the {having[0].name}." if len(having) == 1 else ""
    return Fact("presence", question, "yes" if having else "no", sentence, found.shown(form))


def whether_all(rng: Random, scene: Scene, pool: Pool = SCORED) -> Fact | None:
    found = _found(rng, scene, True, pool)
    form = found and found.form(rng, "all")
    if found is None or form is None or len(found.among) < 2:
        return None
    if found.lacking and rng.random() > NOT_ALL:
        return None
    answer = "no" if found.lacking else "yes"
    return Fact("all are", found.asked(rng, "all", form), answer, evidence=found.shown(form))


def is_it(rng: Random, scene: Scene, pool: Pool = SCORED) -> Fact | None:
    """Whether one of the things has it."""
    item = rng.choice(scene.items)
    words = _called(scene, item)
    yes = rng.random() < 0.5
    trait = _trait_of(rng, item, pool) if yes else _trait_near(rng, item, pool)
    if words is None or trait is None or trait.has(item.noun) != yes or not trait.is_clear((item.noun,)):
        return None
    if (trait.only and trait.only not in _kinds_of(item)) or (trait.printed and scene.lines):
        return None
    if item.is_shape and trait.only != "shape":
        return None
    form = Found(trait, "", (item,), ()).form(rng, "it")
    if form is None:
        return None
    many = is_plural(item.name)
    alone = len(scene.items) == 1 and not scene.lines and not many
    named = rng.choice(THIS) if alone and rng.random() < 0.5 else words
    question = asked(rng, "it", form, it=named, many=many)
    return Fact("is trait", question, "yes" if yes else "no", "", ((words, (item,)),))


def of_two(rng: Random, scene: Scene, pool: Pool = SCORED) -> Fact | None:
    """Which of two things has it."""
    item, other = rng.choice(scene.items), rng.choice(scene.items)
    trait = _trait_of(rng, item, pool)
    if trait is None or trait.has(other.noun) or not trait.is_clear((other.noun,)):
        return None
    if item.is_shape != other.is_shape or (item.is_shape and trait.only != "shape"):
        return None
    if (trait.only and trait.only not in _kinds_of(other)) or (trait.printed and scene.lines):
        return None
    words, others = _called(scene, item), _called(scene, other)
    if words is None or others is None:
        return None
    pair = (words, others) if rng.random() < 0.5 else (others, words)
    question = asked(rng, "two", rng.choice(trait.forms), others=pair)
    return Fact("trait", question, item.name, evidence=((words, (item,)), (others, (other,))))


def which_not(rng: Random, scene: Scene, pool: Pool = SCORED) -> Fact | None:
    """Which things do not have it, where most others do."""
    found = _found(rng, scene, True, pool)
    form = found and found.form(rng, "not")
    if found is None or form is None:
        return None
    lacking = found.lacking
    if not 0 < len(lacking) <= min(MOST_LACKING, len(found.having)):
        return None
    if found.kind != "shape" and any(item.is_shape for item in lacking):
        return None
    frame = "not many" if len(lacking) > 1 else "only not" if len(found.having) > 1 else "not"
    if frame == "only not" and rng.random() < 0.6:
        frame = "not"
    question = found.asked(rng, frame, form)
    return Fact("trait", question, names_of(lacking), evidence=(("the others", lacking),))


def where(rng: Random, scene: Scene, pool: Pool = SCORED) -> Fact | None:
    found = _found(rng, scene, True, pool)
    form = found and found.form(rng, "where")
    if found is None or form is None or len(found.having) != 1 or between_places(found.having[0]):
        return None
    [item] = found.having
    sentence = f"The {item.name} {is_are(item.name)} at the {place(item)}."
    return Fact("place", found.asked(rng, "where", form), place(item), sentence, found.shown(form))


def colour(rng: Random, scene: Scene, pool: Pool = SCORED) -> Fact | None:
    found = _found(rng, scene, True, pool)
    form = found and found.form(rng, "colour")
    if found is None or form is None or len(found.having) != 1 or not found.having[0].colour:
        return None
    [item] = found.having
    sentence = f"The {item.noun} {is_are(item.noun)} {item.colour}."
    question = found.asked(rng, "colour", form)
    return Fact("colour", question, item.colour, sentence, found.shown(form))


def _found(rng: Random, scene: Scene, present: bool, pool: Pool) -> Found | None:
    """A trait that something in the scene has, or nothing."""
    item = rng.choice(scene.items)
    trait = _trait_of(rng, item, pool) if present else _trait_near(rng, item, pool)
    if trait is None or (scene.lines and trait.printed):
        return None
    kinds = [kind for kind in trait.kinds if kind in _kinds_of(item)]
    kind = trait.only
    if not kind and kinds and (scene.lines or rng.random() < CONFINE):
        kind = rng.choice(kinds)
    if scene.lines and not kind:
        return None  # print may be among what is asked for
    among = scene.items
    if kind:
        confined = of_kind(scene, kind)
        if confined is None or not confined.items:
            return None
        among = confined.items
    if not trait.is_clear(other.noun for other in among):
        return None
    having = tuple(other for other in among if trait.has(other.noun))
    return Found(trait, kind, among, having) if bool(having) == present else None


def _trait_of(rng: Random, item: Item, pool: Pool) -> Trait | None:
    return _one_of(rng, item.noun, pool)


def _one_of(rng: Random, noun: str, pool: Pool) -> Trait | None:
    traits, weights = pool.of_thing[noun]
    return rng.choices(traits, cum_weights=weights)[0] if traits else None


def _trait_near(rng: Random, item: Item, pool: Pool) -> Trait | None:
    """One that the thing may not have: that of something alike, or any."""
    alike = _ALIKE.get(item.noun)
    if alike and rng.random() < NEAR:
        return _one_of(rng, rng.choice(alike), pool)
    return rng.choice(pool.traits)


def _called(scene: Scene, item: Item) -> str | None:
    """Words that fit this thing alone."""
    if item.is_shape:
        alike = [other for other in scene.items if other.name == item.name]
        return f"the {item.name}" if len(alike) == 1 else None
    found = of_noun(scene, item.noun, item.noun)
    return f"the {item.noun}" if found is not None and len(found.items) == 1 else None


def _kinds_of(item: Item) -> tuple[str, ...]:
    return item.known_as.kinds


def _alike() -> dict[str, tuple[str, ...]]:
    """The other things of a thing's kinds, or of its group where it is of no kind."""
    sorts = [group_of(name) for name in (*KINDS, "shape", "object", "being")]
    found: dict[str, set[str]] = {}
    for sort in sorts:
        for name in sort:
            found.setdefault(name, set()).update(sort - {name})
    return {name: tuple(sorted(others)) for name, others in found.items()}


_ALIKE = _alike()
Maker = Callable[[Random, Scene, Pool], Fact | None]
MAKERS: dict[Maker, float] = {
    which: 40,
    how_many: 12,
    whether_any: 14,
    is_it: 14,
    of_two: 9,
    which_not: 5,
    whether_all: 3,
    where: 4,
    colour: 2,
}
CHOICES, WEIGHTS = tuple(MAKERS), tuple(MAKERS.values())
