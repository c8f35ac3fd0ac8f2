"""What is asked about the traits of things is true, and nothing is asked on which people differ."""

import re
from collections import Counter
from functools import cache
from itertools import product
from random import Random

import pytest

from kestrel_tools.scenes.world import SHAPES
from kestrel_tools.things.language import spelling
from kestrel_tools.things.language.fact import Fact, names_of, place
from kestrel_tools.things.language.traits import facts as traits
from kestrel_tools.things.language.traits import more, reallife
from kestrel_tools.things.language.traits.sentences import asked, finished, fits, label_of
from kestrel_tools.things.language.traits.table import (
    EVERY,
    TRAITS,
    TRAITS_OF,
    Trait,
    base_of,
    form_of,
    group_of,
    read,
)
from kestrel_tools.things.language.traits.words import FRAMES
from kestrel_tools.things.names import KINDS, by_name, nouns
from kestrel_tools.things.scene import Item, Scene
from tests.thing_scenes import WHITE, answers, at, line, made, scene_of


@pytest.fixture(autouse=True)
def no_typos(monkeypatch: pytest.MonkeyPatch) -> None:
    """The words of a question are looked for here."""
    monkeypatch.setattr(spelling, "mistyped", lambda rng, question: question)


@cache
def scenes() -> tuple[Scene, ...]:
    """Of all things, half of them of one kind; some have print."""
    rng, found = Random(3), []
    for number in range(500):
        kind = rng.choice(tuple(KINDS))
        pool = sorted(group_of(kind)) if number % 2 else [noun.name for noun in nouns()]
        items = [
            at(rng.choice(pool), rng.random(), rng.random(), rng.choice(("", "red")))
            for _ in range(number % 7)
        ]
        lines = (line("tea", 0.5, 0.5, (0, 0, 0)),) if number % 5 == 0 else ()
        found.append(Scene(1.0, WHITE, scene_of(*items).items, lines))
    return tuple(found)


def facts_of(maker: traits.Maker, each: int = 4) -> list[tuple[Scene, Fact]]:
    rng = Random(maker.__name__)
    pairs = ((scene, maker(rng, scene)) for scene in scenes() if scene.items for _ in range(each))
    return [(scene, fact) for scene, fact in pairs if fact is not None]


@cache
def by_label() -> dict[str, list[tuple[Trait, str]]]:
    """The traits, by the words that their evidence has."""
    found: dict[str, list[tuple[Trait, str]]] = {}
    for trait in (*TRAITS, *more.NEW):
        for form, kind in product(trait.forms, ("", *trait.kinds)):
            found.setdefault(label_of(form, kind), []).append((trait, kind))
    return found


def told(scene: Scene, fact: Fact) -> list[tuple[list[Item], list[Item]]]:
    """What it was asked of and what has the trait, for each trait that is called so; none may be disputed."""
    found = []
    for trait, kind in by_label()[fact.evidence[0][0]]:
        among = [i for i in scene.items if not kind or kind in i.known_as.kinds]
        if any(item.noun in trait.disputed for item in among):
            continue
        found.append((among, [item for item in among if item.noun in trait.things]))
    assert found, fact
    return found


def test_there_are_many_traits_and_everything_has_some() -> None:
    assert len(TRAITS) >= 220
    without = {name for name, (found, _) in TRAITS_OF.items() if not found}
    assert not without, without
    assert set(by_name()) | set(SHAPES) == set(EVERY) == set(TRAITS_OF)
    assert sum(len(trait.forms) for trait in TRAITS) > 500


def trait_of(words: str) -> Trait:
    [found] = [trait for trait in TRAITS if form_of(words) in trait.forms]
    return found


def test_kinds_are_as_the_names_have_them() -> None:
    for words, kind in (
        ("a vehicle", "vehicle"),
        ("an animal", "animal"),
        ("a bird", "bird"),
        ("an insect", "insect"),
        ("a musical instrument", "instrument"),
        ("a piece of clothing = pieces of clothing", "clothing"),
        ("a flower", "flower"),
        ("a ball", "ball"),
    ):
        assert trait_of(words).things == {noun.name for noun in nouns() if kind in noun.kinds}, words
    for noun in nouns():
        for kind, words in (("fruit", "a fruit"), ("vegetable", "a vegetable"), ("insect", "an insect")):
            assert kind not in noun.arguably or not trait_of(words).has(noun.name), (noun.name, kind)


# What has the one has the other, or is disputed; and what has the one cannot have the other.
IMPLIED = (
    ("barks", "a mammal"), ("says meow", "a mammal"), ("a mammal", "is alive"), ("a bird", "has wings"),
    ("has feathers", "has a beak"), ("has a beak", "lays eggs"), ("has four legs", "a mammal"),
    ("can fly", "has wings"), ("has gills", "can swim"), ("has fins", "can swim"),
    ("has hooves", "has four legs"), ("lives in the sea", "can swim"), ("a pet", "an animal"),
    ("a farm animal", "an animal"), ("a fruit", "you eat"), ("you eat ~ raw", "you eat"),
    ("tastes sweet", "you eat"), ("a dessert", "you eat"), ("a vegetable", "you eat"),
    ("is fast food", "you eat"), ("a two-wheeler", "has wheels"), ("has wheels", "a vehicle"),
    ("has a siren", "has a motor"), ("has a motor", "a vehicle"), ("a boat", "a vehicle"),
    ("a tool", "is man-made"), ("has strings", "to make music = making music"),
    ("you wear ~ on your head", "you wear"), ("you wear ~ on your feet", "you wear"),
    ("a piece of clothing = pieces of clothing", "you wear"), ("has a sharp blade", "is man-made"),
    ("has a screen", "runs on electricity"), ("a predator", "is alive"), ("a wild animal", "an animal"),
    ("eats grass", "has four legs"), ("has fur", "has four legs"), ("a reptile", "is alive"),
    ("is furious", "shows a feeling"), ("a flower", "a plant"),
)  # fmt: skip
EXCLUDED = (
    ("is alive", "is man-made"), ("you eat", "is man-made"), ("a vehicle", "you wear"),
    ("a mammal", "a bird"), ("a bird", "an insect"), ("a mammal", "a reptile"),
    ("has six legs", "has four legs"), ("a fruit", "a vegetable"), ("has two legs", "has four legs"),
    ("is very hot", "is very cold"), ("tastes sweet", "tastes sour"), ("a pet", "a wild animal"),
    ("fits in a pocket", "is heavier than a person"), ("says moo", "says oink"),
    ("has eight legs", "has six legs"), ("is smiling", "is crying"), ("has feathers", "has fur"),
    ("a plant", "an animal"), ("has corners", "has no corners"), ("travels on water", "runs on rails"),
    ("is man-made", "a plant"), ("you see ~ in the sky", "is man-made"),
    ("has three corners", "has four corners"),
)  # fmt: skip


@pytest.mark.parametrize(("first", "second"), IMPLIED)
def test_what_has_one_trait_has_another(first: str, second: str) -> None:
    one, other = trait_of(first), trait_of(second)
    assert one.things <= other.things | other.disputed, sorted(one.things - other.things - other.disputed)


@pytest.mark.parametrize(("first", "second"), EXCLUDED)
def test_nothing_has_two_traits_that_contradict_each_other(first: str, second: str) -> None:
    assert trait_of(first).things.isdisjoint(trait_of(second).things)


def test_nothing_is_both_true_and_disputed_and_a_name_counts_more_than_a_group() -> None:
    for trait in TRAITS:
        assert trait.things.isdisjoint(trait.disputed)
    [trait] = read("flies\n+ @bird, bat\n? penguin, @animal, -cow\n")
    assert trait.things == {"chicken", "duck", "owl", "eagle", "bat"}
    assert {"penguin", "dog"} <= trait.disputed and "cow" not in trait.disputed
    with pytest.raises(ValueError, match="both"):
        read("flies\n+ bat\n? bat\n")
    with pytest.raises(ValueError, match="unicorn"):
        read("flies\n+ unicorn\n")


def test_a_form_is_read_by_its_first_word() -> None:
    assert form_of("carries its home on its back").many == "carry their home on their back"
    assert form_of("carries its home on its back").other == "carry its home on its back"
    assert form_of("breaks if you drop it").many == "break if you drop them"
    assert form_of("tells you what time it is").many == "tell you what time it is"
    assert (form_of("an animal").words, form_of("an animal").many) == ("an animal", "animals")
    assert form_of("you wear").words == "wear ~"
    assert [base_of(verb) for verb in ("has", "goes", "catches", "gives")] == ["have", "go", "catch", "give"]


def test_which_things_have_it_is_what_the_table_says() -> None:
    seen = Counter[str]()
    for scene, fact in facts_of(traits.which):
        said = {names_of(having) or fact.answer for _, having in told(scene, fact)}
        assert fact.answer in said, fact
        seen[fact.answer] += 1
        assert (fact.answer in ("nothing", "none")) == (not fact.evidence[0][1])
    assert seen["nothing"] > 20 and seen["none"] > 5 and len(seen) > 200


def test_how_many_have_it_is_what_the_table_says() -> None:
    seen = set()
    for scene, fact in facts_of(traits.how_many):
        assert int(fact.answer) in {len(having) for _, having in told(scene, fact)}, fact
        seen.add(fact.answer)
    assert {"0", "1", "2", "3"} <= seen


def test_whether_any_or_all_have_it_is_what_the_table_says() -> None:
    for maker in (traits.whether_any, traits.whether_all):
        seen = Counter[str]()
        for scene, fact in facts_of(maker, 8):
            number = any if maker is traits.whether_any else all
            said = {number(i in having for i in among) for among, having in told(scene, fact)}
            assert (fact.answer == "yes") in said, fact
            seen[fact.answer] += 1
        assert 0.3 < seen["yes"] / seen.total() < 0.7, seen


def test_where_it_is_and_what_colour_it_has_is_that_of_the_one_that_has_it() -> None:
    for scene, fact in facts_of(traits.where):
        assert any(len(having) == 1 and fact.answer == place(having[0]) for _, having in told(scene, fact))
    for scene, fact in facts_of(traits.colour):
        assert any(len(having) == 1 and fact.answer == having[0].colour for _, having in told(scene, fact))


# Words by which a question is known, a thing that has the trait, and one that has not.
KNOWN = (
    (r"\b(woof|barks?)\b", "dog", "cow"),
    (r"\bmoo\b", "cow", "dog"),
    (r"\b(has|have) wheels\b", "bus", "cat"),
    (r"\bsleeves\b", "shirt", "shoe"),
    (r"\b(strings)\b", "violin", "hammer"),
    (r"a musical instrument\b(?! (that|which|here|do|to))|musical instruments\?", "drum", "cheese"),
    (r"on (the|your) (feet)\b", "boot", "hat"),
    (r"(able to|can|could) fly\b", "eagle", "pig"),
    (r"\bedible\b|\bhungry\b", "apple", "key"),
    (r"\bscreen\b", "laptop", "apple"),
    (r"(cut|cuts|cutting) (paper|hair|a? ?ribbons?)", "scissors", "spider"),
    (r"\bcrying\b|\bsad\?", "sad face", "smiley"),
)


@pytest.mark.parametrize(("pattern", "has", "lacks"), KNOWN)
def test_of_two_things_one_has_it(pattern: str, has: str, lacks: str) -> None:
    scene, tries = scene_of(at(has, 0.2, 0.5), at(lacks, 0.8, 0.5)), 700
    of_one, of_other = (
        rf"(?i)(?s)(?=.*{pattern})(?=.*\b{has}\b)",
        rf"(?i)(?s)(?=.*{pattern})(?=.*\b{lacks}\b)",
    )
    assert answers(traits.is_it, scene, of_one, tries) == {"yes"}
    assert answers(traits.is_it, scene, of_other, tries) <= {"no"}
    assert answers(traits.of_two, scene, rf"(?i){pattern}", tries) == {has}
    assert answers(traits.which_not, scene, rf"(?i){pattern}", tries) <= {lacks}
    assert answers(traits.which, scene, rf"(?i){pattern}", tries) == {has}
    assert answers(traits.how_many, scene, rf"(?i){pattern}", tries) <= {"1"}


def test_both_of_two_things_are_named() -> None:
    for _, fact in facts_of(traits.of_two):
        said = fact.question.replace("The ", "the ").replace("  ", " ").replace("aeroplane", "airplane")
        assert all(words in said for words, _ in fact.evidence), fact


def test_what_does_not_have_it_is_less_than_what_has() -> None:
    for scene, fact in facts_of(traits.which_not, 10):
        [(_, lacking)] = fact.evidence
        items = [item for item in lacking if isinstance(item, Item)]
        assert fact.answer == names_of(items) and 0 < len(items) <= 3
        assert 2 * len(items) <= len(scene.items)


def test_a_thing_is_told_by_what_it_is_for() -> None:
    scene = scene_of(at("key", 0.2, 0.5), at("clover", 0.5, 0.5), at("chair", 0.8, 0.5))
    assert answers(traits.which, scene, r"(?i)unlock|locked out", 2000) == {"key"}
    assert answers(traits.which, scene, r"(?i)\bsit on", 2000) == {"chair"}
    assert answers(traits.which, scene_of(at("cup", 0.2, 0.5)), r"(?i)thirsty", 2000) == {"cup"}
    assert answers(traits.which, scene_of(at("pencil", 0.2, 0.5)), r"(?i)thirsty", 4000) <= {"nothing"}
    both = scene_of(at("clock", 0.2, 0.5), at("watch", 0.5, 0.5))
    assert answers(traits.which, both, r"(?i)\btime\b", 2000) == {"clock, watch"}


@pytest.mark.parametrize(
    ("things", "pattern"),
    [
        (("knife", "scissors"), r"(?i)ribbon|cut paper|cut hair"),
        (("tomato", "apple"), r"(?i)\bfruit\b"),
        (("spider", "ant"), r"(?i)\b(insects?|bugs?)\b"),
        (("penguin", "eagle"), r"(?i)(can|able to|could) fly\b"),
        (("cow", "apple"), r"(?i)edible|\bhungry\b"),
        (("bus", "motorcycle"), r"(?i)(can|could) \w+ ride\b|be ridden"),
        (("phone", "clock"), r"(?i)\btime\b(?! (and|of))"),
        (("egg", "dog"), r"(?i)\balive\b|living being"),
    ],
)
def test_what_is_disputed_is_not_asked(things: tuple[str, str], pattern: str) -> None:
    scene = scene_of(at(things[0], 0.2, 0.5), at(things[1], 0.8, 0.5))
    for maker in (traits.which, traits.how_many, traits.whether_any, traits.of_two, traits.whether_all):
        assert answers(maker, scene, pattern, 500) == set(), maker.__name__
    of_it = rf"(?is)(?=.*({pattern[4:]}))(?=.*{things[0]})"
    assert answers(traits.is_it, scene, of_it, 2500) == set()


def test_beside_print_one_asks_of_animals_and_not_of_everything() -> None:
    items = (at("dog", 0.2, 0.5), at("duck", 0.4, 0.5), at("book", 0.8, 0.5))
    scene = Scene(1.0, WHITE, items, (line("menu", 0.5, 0.2, (0, 0, 0)),))
    rng = Random(5)
    for maker in (traits.which, traits.how_many, traits.whether_any, traits.whether_all):
        asked_so = [fact.question for fact in (maker(rng, scene) for _ in range(600)) if fact is not None]
        assert asked_so and all(re.search(r"(?i)animal|creature|\bbirds?\b", one) for one in asked_so)
    assert answers(traits.trait, scene, r"(?i)\bread\b|pages", 3000) == set(), "the print can be read too"


def test_every_way_of_asking_makes_whole_sentences() -> None:
    rng = Random(6)
    for trait in TRAITS:
        templates = (*trait.which, *trait.whether)
        found = [finished(rng, template) for template in templates]
        for form, frame in product(trait.forms, FRAMES):
            if fits(form, frame):
                kind = "" if form.kind == "one" else rng.choice(("", *trait.kinds))
                found.append(
                    asked(rng, frame, form, kind, "the dog", ("the cat", "the pig"), False, trait.sort)
                )
        for question in found:
            assert not re.search(r"[\[\]|<>{}~]| that that | of of |\ba [aeio]", question), question
            assert 6 < len(question) < 260, question


def test_every_frame_is_in_use_and_has_many_wordings() -> None:
    rng, form = Random(7), form_of("gives us milk")
    for frame in FRAMES:
        assert fits(form, frame)
        assert len({asked(rng, frame, form, it="the cow") for _ in range(200)}) > 40, frame
    assert not fits(form_of("by a king: wear"), "it") and not fits(form_of("has no legs"), "not")


def test_each_way_occurs_and_little_is_refused() -> None:
    rng, kinds, refused = Random(8), Counter[str](), 0
    for scene in scenes() * 2:
        found = traits.trait(rng, scene)
        refused += found is None and bool(scene.items) and not scene.lines
        if found is not None:
            kinds[found.kind] += 1
    assert set(kinds) == {"trait", "count", "presence", "is trait", "all are", "place", "colour"}
    assert refused < 0.25 * kinds.total()
    assert kinds["trait"] > kinds["is trait"] > kinds["count"] > kinds["colour"]


def test_shapes_are_asked_about_corners_but_not_whether_they_fly() -> None:
    facts = [(scene, fact) for scene, fact in made(traits.trait) if all(i.is_shape for i in scene.items)]
    assert any(re.search(r"corner|sides|round|points", fact.question) for _, fact in facts)
    for _, fact in facts:
        if fact.kind == "is trait":
            assert re.search(r"corner|sides|round|points|plus|coin|hole", fact.question), fact.question


def test_training_asks_about_more_traits_and_what_the_table_says_of_them() -> None:
    assert len(more.NEW) > 35 and {trait.forms for trait in more.NEW}.isdisjoint(t.forms for t in TRAITS)
    rng, seen = Random(9), Counter[str]()
    for scene in scenes() * 3:
        fact = more.everyday_trait(rng, scene)
        if fact is None or fact.kind not in ("trait", "count", "presence") or len(fact.evidence) > 1:
            continue
        if fact.evidence[0][0] == "the others":
            continue
        seen[fact.kind] += 1
        had = [having for _, having in told(scene, fact)]
        said = {names_of(having) or fact.answer for having in had}
        said |= {str(len(having)) for having in had} | {"yes" if having else "no" for having in had}
        assert fact.answer in said, fact
    assert seen["trait"] > 200 and seen["presence"] > 50 and seen["count"] > 50


def test_each_form_gets_wordings_of_its_own_in_training_that_are_whole_sentences() -> None:
    rng = Random(10)
    for trait in more.EVERYDAY.traits:
        assert len(trait.which) > 2 or all(form.kind in ("one", "when") for form in trait.forms), trait.forms
        for template in (*trait.which, *trait.whether):
            question = finished(rng, template)
            assert not re.search(r"[\[\]|<>{}~]| that that | of of |\ba [aeio]|with to\b", question), question
            assert not re.search(r"(?i)something something|does (the police|children)", question), question
        if all(form.kind == "one" for form in trait.forms):
            assert not any("does a" in template for template in trait.which), "a bird does nothing here"
    known = {form for trait in TRAITS for form in trait.forms}
    assert known >= {*more.OWN_WHICH, *more.OWN_WHETHER}, "each is below a form that there is"


def test_a_thing_is_told_by_a_need_that_does_not_name_its_use() -> None:
    scene = scene_of(at("bed", 0.2, 0.5), at("orange", 0.5, 0.5), at("anchor", 0.8, 0.5))
    assert answers(more.everyday_trait, scene, r"(?i)take a nap|spend the night", 3000) == {"bed"}
    assert answers(more.everyday_trait, scene, r"(?i)what.*(snack on|munch on)", 3000) == {"orange"}
    happy = scene_of(at("smiley", 0.2, 0.5), at("angry face", 0.5, 0.5))
    assert answers(more.everyday_trait, happy, r"(?i)who (here )?is (happy|in a good mood)", 2000) == {
        "smiley"
    }
    crying = scene_of(at("sad face", 0.2, 0.5), at("angry face", 0.5, 0.5))
    assert answers(more.everyday_trait, crying, r"(?i)crying|tears", 2000) == set(), "some only frown"


def test_only_what_is_far_apart_is_compared_in_real_life() -> None:
    scene = scene_of(at("elephant", 0.2, 0.5), at("mouse", 0.5, 0.5), at("ant", 0.8, 0.5))
    assert answers(
        reallife.compared, scene, r"(?i)(which|what) (is|would be) (bigger|larger|heavier)", 800
    ) == {"elephant"}
    assert answers(reallife.compared, scene, r"(?i)(biggest|largest|heaviest)", 800) == {"elephant"}
    assert answers(reallife.compared, scene, r"(?i)(smallest|lightest)", 800) == set(), "a mouse is small too"
    assert answers(reallife.compared, scene, r"(?i)is the mouse (bigger|heavier|larger) than", 800) == {"no"}
    near = scene_of(at("cow", 0.2, 0.5), at("lion", 0.5, 0.5))
    assert answers(reallife.compared, near, "", 300) == set()
    same = scene_of(at("whale", 0.2, 0.5), at("whale", 0.5, 0.5), at("egg", 0.8, 0.5))
    assert answers(reallife.compared, same, r"(?i)(biggest|bigger)", 300) == set(), "which of the two?"
    assert set(reallife.STEP) <= set(by_name()), set(reallife.STEP) - set(by_name())
