"""The same questions in other words: they keep their meaning, their answers, and what is printed."""

import re
from collections import Counter
from random import Random
from string import Formatter
from typing import Any

import pytest

from kestrel_tools.things.language import choices, claims, kinds, manners, places, questions, rewording, talk
from kestrel_tools.things.language.choose import fact, spatial_fact
from kestrel_tools.things.language.fact import Fact
from kestrel_tools.things.language.more import frames, marks
from kestrel_tools.things.language.more import talk as more_talk
from kestrel_tools.things.language.printed import facts as print_facts
from kestrel_tools.things.language.questions import Question, asked
from kestrel_tools.things.language.rewording import put_otherwise, reworded
from kestrel_tools.things.language.spelling import INNERMOST, chosen
from kestrel_tools.things.names import NUMBERS
from kestrel_tools.things.scene import Scene
from tests.thing_scenes import answers, at, line, made, scene_of, scenes

LEFT_OVER = re.compile(r"[\[\]|<>{}\ue000-\uf8ff]")
MODULES = (questions, places, choices, kinds)
TABLES = [(module, kind) for module in MODULES for kind in module.QUESTIONS if kind != "beside"]
YES_OR_NO = (
    *("presence", "presence any", "presence or", "presence and", "is colour", "is this", "relation"),
    *("has text", "compare size", "more of", "is anything", "anything in part", "is in part", "is between"),
    *("all are", "anything between", "any of kind", "is empty"),
)  # fmt: skip


@pytest.fixture
def as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Always in other words, without what people do to them."""
    monkeypatch.setattr(rewording, "typed", lambda rng, question: question)
    for name, share in {"LEFT_ALONE": 0, "OTHERWISE": 1, "BEFORE": 0, "AFTER": 0, "SHORT": 0}.items():
        monkeypatch.setattr(rewording, name, share)
    monkeypatch.setattr(rewording, "IN_BRITAIN", 0)
    monkeypatch.setattr(rewording, "STRESSED", 0)


def num_subjects(template: str) -> int:
    fields = [field for _, field, _, _ in Formatter().parse(template) if field is not None]
    numbered = [int(field) + 1 for field in fields if field]
    assert not numbered or len(numbered) == len(fields), template
    return max(numbered, default=len(fields))


def test_each_kind_has_at_least_as_many_other_wordings() -> None:
    for module, kind in TABLES:
        old, new = module.QUESTIONS[kind], module.MORE[kind]
        assert len(new) >= len(old), kind
        assert not {*new} & {*old} and len({*new}) == len(new), kind
        assert max(map(num_subjects, new)) <= max(map(num_subjects, old)), kind
    assert all({*module.MORE} <= {*module.QUESTIONS} for module in MODULES)


@pytest.mark.parametrize("module", [*MODULES, claims])
def test_no_wording_leaves_a_mark(module: Any) -> None:
    rng = Random(1)
    for kind, templates in getattr(module, "MORE", module.QUESTIONS).items():
        for template in templates:
            for many in (False, True):
                subjects = ("the dog", "the cats", "an apple", "the grapes")
                found = questions.filled(rng, template, subjects, many)
                assert found and not LEFT_OVER.search(found), (kind, template, found)
    for template in [
        one for table in (frames.FRAMES, more_talk.MORE) for many in table.values() for one in many
    ]:
        assert not LEFT_OVER.search(chosen(rng, template)), template


def test_a_subject_may_be_said_without_its_article_or_with_another() -> None:
    rng = Random(1)
    assert questions.filled(rng, "{:bare} what color", ("the dog",), False) == "Dog what color"
    assert questions.filled(rng, "I see {:a}.", ("the orange",), False) == "I see an orange."
    assert questions.filled(rng, "I see {:a}. What is near <them>?", ("the grapes",), True) == (
        "I see grapes. What is near them?"
    )


def test_who_must_be_named_is_named_in_every_alternative() -> None:
    """Of "[what|which {}] comes first" one says nothing of the animals it is about."""
    for kind in ("most left", "most right", "most top", "most bottom", "most big", "most small"):
        for template in questions.with_subject(questions.MORE[kind]):
            bare = template
            while INNERMOST.search(bare):
                bare = INNERMOST.sub("", bare)
            assert "{" in bare, template


def test_the_big_the_small_and_the_sides_are_not_mistaken() -> None:
    more = questions.MORE
    for kind, never in {
        "most big": "small|tini|least",
        "most small": r"biggest|largest|bigger|larger|\bmost (space|area|room)",
        "bigger of": "small",
        "smaller of": "bigger|larger|biggest",
        "most top": "lower than this|lowest|at the very bottom",
        "most bottom": "higher than this|highest|at the very top",
    }.items():
        assert not [one for one in more[kind] if re.search(never, one)], kind
    swapped = [
        re.sub("left|right", lambda side: {"left": "right"}.get(side[0], "left"), one)
        for one in more["most left"]
    ]
    alike = {*swapped} & {*more["most right"]}
    assert len(alike) >= len(more["most left"]) - 5, "the others speak of the first and the last"


def test_what_is_answered_with_yes_is_never_turned_into_its_opposite() -> None:
    """A no to "isn't there a cat?" would be misread."""
    allowed = re.compile(
        r"yes or no|or no[t]?\b|not sure|no fewer than|no less than|nothing to see|I (can't|cannot|don't)|"
        r"(isn't|aren't|doesn't|don't) (it|there|I|you|we)|can't you|without exception|does not|Do I need"
    )
    for module in MODULES:
        for kind in YES_OR_NO:
            for template in module.MORE.get(kind, ()):
                for _ in range(6):
                    words = allowed.sub("", questions.filled(Random(_), template, ("one",) * 4, False))
                    assert not re.search(r"\b(not|no|never|without|missing|n't|nothing)\b|n't", words), (
                        template
                    )


def test_other_words_change_nothing_but_the_question() -> None:
    rng, used = Random(5), Counter[tuple[str, ...]]()
    for number, scene in enumerate(scenes() * 12):
        spatial = spatial_fact(rng, scene) if number % 12 == 0 else None
        found = spatial[0] if spatial else fact(rng, scene)
        other = reworded(rng, found)
        assert other._replace(question="", sentence="") == found._replace(question="", sentence="")
        assert other.sentence in (found.sentence, "")
        assert other.question.strip() and not LEFT_OVER.search(other.question), other
        if isinstance(found.question, Question):
            used[found.question.asking.more] += 1
    missed = [kind for module, kind in TABLES if not used[module.MORE[kind]]]
    assert not missed, "each kind occurs"


def test_the_subjects_are_still_said(as_written: None) -> None:
    """Where some wordings do without one, as "the leftmost" of all things, it need not be said."""
    optional = {
        *(questions.MORE[f"most {way}"] for way in ("left", "right", "top", "bottom", "big", "small")),
        *(kinds.MORE[kind] for kind in ("all colours", "coloured of kind", "all are")),
    }
    rng, seen = Random(6), 0
    for scene in scenes() * 6:
        found = fact(rng, scene)
        if not isinstance(found.question, Question) or not found.question.asking.more:
            continue
        asking, other = found.question.asking, reworded(rng, found).question.lower()
        said = asking.subjects[:1] if asking.named else asking.subjects
        for subject in said if asking.named or asking.more not in optional else ():
            if "[" not in subject:
                assert re.sub("^(the|an?) ", "", subject).lower() in other, (subject, other)
                seen += 1
    assert seen > 1000


def test_the_score_asks_as_it_did() -> None:
    """The first words of a seed, which were written down before there were others."""
    for module, kind in TABLES:
        subjects = ("the dog", "the cat", "the car", "the tree")
        for seed in range(5):
            with_more, without = Random(seed), Random(seed)
            question = asked(with_more, kind, *subjects, among=module.QUESTIONS, more=module.MORE)
            assert question == asked(without, kind, *subjects, among=module.QUESTIONS, more={})
            assert with_more.random() == without.random()
            assert type(str(question)) is str and question.asking.more == module.MORE[kind]
    assert [asked(Random(seed), "count", "dogs") for seed in range(3)] == [
        "Number of dogs?",
        "For work: how many dogs does the image show",
        "How many dogs can you see?",
    ]
    assert (
        places.asked(Random(0), "neighbour", "left of", "the dog")
        == "Can you tell me what is left of the dog."
    )
    assert [talk.talk(Random(seed), False)[1] for seed in (0, 5)] == [
        "Do you speak Spanish?",
        "Do you understand pictures",
    ]
    assert asked(Random(1), "one", "dogs", among={"one": ("{}?",)}).asking.more == (), "of another table"


def test_about_half_is_put_in_other_words() -> None:
    rng, others, lengths = Random(8), 0, Counter[str]()
    for scene in scenes() * 4:
        found = fact(rng, scene)
        other = reworded(rng, found)
        others += found.question != other.question
        lengths["score"] += len(found.question)
        lengths["training"] += len(other.question)
    assert 0.55 < others / (len(scenes()) * 4) < 0.85
    assert lengths["training"] < 1.5 * lengths["score"], "long ones take room from others"


def test_printed_words_stay_as_they_are() -> None:
    seen = 0
    for _, found in made(print_facts.about_print, 12):
        assert isinstance(found.question, Question)
        asking = found.question.asking
        if asking.exact and all(subject in asking.plain for subject in asking.subjects):
            for seed in range(4):
                other = put_otherwise(Random(seed), found.question)
                assert all(subject in other for subject in asking.subjects), other
                seen += 1
    assert seen > 300
    for seed in range(300):
        assert '"Fish and the Chips"' in put_otherwise(Random(seed), 'Does it say "Fish and the Chips"?')
        label = put_otherwise(Random(seed), "How many does Thursday have, and what is Week 12?")
        assert "Thursday" in label and "Week" in label and "12" in label, label


def test_a_slip_makes_no_other_name() -> None:
    rng, known = Random(2), manners.known_words()
    for question in ("Is there a boat?", "Read the card of the bears.", "Where are the trees and the goats?"):
        before = {*re.findall("[a-z]+", question.lower())}
        for _ in range(400):
            after = {*re.findall("[a-z]+", manners.slipping(rng, question).lower())}
            assert not (after - before) & known
    assert any(manners.slipping(Random(seed), "Is there a boat?") != "Is there a boat?" for seed in range(9))


def test_habits_are_what_they_say() -> None:
    rng = Random(3)
    assert manners.lowered(rng, "Is there a Dog?") == "is there a dog"
    assert "u" in manners.chatty(Random(1), "Do you see what's there, please?").split()
    assert not re.search(r"\bthe\b", manners.foreign(Random(4), "Where is the dog left of the cat?"))
    assert manners.tight(rng, "Hi, is it so? Yes.") == "Hi,is it so?Yes."
    assert manners.shouting(rng, "Any cats?").startswith("ANY CATS")
    assert len(manners.glued(rng, "is there a dog")) == len("is there a dog") - 1
    every = {manners.typed(Random(seed), "Is there a small dog, please?") for seed in range(600)}
    assert len(every) > 60


def test_who_wants_a_number_alone_gets_one() -> None:
    rng, told = Random(4), Counter[str]()
    for scene in scenes() * 12:
        other = reworded(rng, fact(rng, scene))
        text = other.question.lower()
        if re.search(r"(just|only) (the|a) number|numbers only|digits only|with (a|the) number", text):
            assert other.answer.isdigit() and not other.sentence, other
            told["number"] += 1
        elif re.search(r"(just|only|simply) (say )?yes or no|with yes or no|y/n", text):
            assert other.answer in ("yes", "no"), other
            told["yes or no"] += 1
    assert told["number"] > 5 and told["yes or no"] > 5


def test_small_talk_has_other_words_for_each_answer() -> None:
    assert {*more_talk.SMALL_TALK} == {answer for _, answer in talk.SMALL_TALK}
    assert {*more_talk.MEDIUM} == {answer for _, answer in talk.MEDIUM}
    rng, said = Random(5), Counter[str]()
    for number in range(2000):
        _, question, answer = talk.talk(rng, number % 2 == 0)
        other = put_otherwise(rng, question)
        assert other.strip() and not LEFT_OVER.search(other), other
        said[answer] += 1
    assert len(said) > 18


# What a question about a number says, in the order in which it is looked for.
SAYS = (
    (r"more than one\b", lambda there, _: there > 1),
    (r"at least|no fewer than|no less than|\bor more\b", lambda there, named: there >= named),
    (r"more than", lambda there, named: there > named),
    (r"(fewer|less) than", lambda there, named: there < named),
    (r"pair of", lambda there, _: there == 2),
    (r"\bone\b", lambda there, _: there == 1),
    (r"", lambda there, named: there == named),
)


def number_in(question: str) -> int | None:
    found = [
        int(word) if word.isdigit() else NUMBERS.index(word) for word in NUMBERED.findall(question.lower())
    ]
    return found[0] if found else None


NUMBERED = re.compile(rf"\b({'|'.join(NUMBERS[1:])}|\d+) (?!of |or no)\w+")


def test_a_number_that_is_named_is_right_or_not() -> None:
    told = Counter[tuple[str, str]]()
    for _, found in made(claims.claim, 14):
        asking = found.question.asking  # type: ignore[attr-defined]
        [(_, items)] = found.evidence
        pattern, holds = next((p, h) for p, h in SAYS if re.search(p, asking.plain.lower()))
        named = number_in(asking.plain)
        assert named is not None or pattern == r"pair of", asking.plain
        assert (found.answer == "yes") == holds(len(items), named), (asking.plain, len(items))
        told[pattern, found.answer] += 1
    assert all(told[pattern, answer] for pattern, _ in SAYS for answer in ("yes", "no")), told
    share = sum(count for (_, answer), count in told.items() if answer == "yes") / sum(told.values())
    assert 0.3 < share < 0.6


def test_numbers_of_a_few_scenes() -> None:
    row = scene_of(*(at("fox", x, 0.5) for x in (0.2, 0.5, 0.8)), at("cat", 0.5, 0.9))
    claim = claims.claim
    assert answers(claim, row, r"^Are there (exactly )?(three|3) foxes\?", 4000) == {"yes"}
    assert answers(claim, row, r"^Are there (exactly )?(two|2|four|4) foxes\?", 4000) == {"no"}
    assert answers(claim, row, r"at least (two|2|three|3) foxes", 4000) == {"yes"}
    assert answers(claim, row, r"(only|just) one cat", 4000) == {"yes"}
    assert answers(claim, row, r"pair of foxes", 4000) == set(), "there are two of them and one more"
    zoo = scene_of(at("fox", 0.2, 0.5), at("cat", 0.8, 0.5), at("scissors", 0.5, 0.9))
    assert answers(claim, zoo, "pair of animals", 4000) == set()
    assert answers(claim, zoo, "(?<!pair of )(?<!pairs of )scissors", 4000) == set(), (
        "nobody says two scissors"
    )
    assert answers(claim, zoo, "pair of pairs", 4000) == set()


def test_two_parts_are_answered_in_their_order() -> None:
    told = Counter[str]()
    for scene, found in made(claims.two_parts, 8):
        first, second = found.answer.split(", ")
        items = [item for _, shown in found.evidence for item in shown]
        if second.isdigit():
            told["number"] += 1
            assert sum(item.name == first for item in scene.items) == int(second), found
        elif second in ("top", "bottom", "left", "right", "center") or " " in second:
            told["place"] += 1
            x, y = items[0].centre
            assert ("left" in second) == (x < 1 / 3) and ("bottom" in second) == (y > 2 / 3), found
        else:
            told["colour"] += 1
            assert [item.colour for item in scene.items if item.name == first] == [second], found  # type: ignore[union-attr]
    assert min(told["number"], told["place"], told["colour"]) > 20
    fruit = scene_of(at("apple", 0.1, 0.5), at("apple", 0.5, 0.5), at("pear", 0.9, 0.5))
    assert answers(claims.two_parts, fruit, "") == set(), "which of the two?"


def test_marks_are_replaced_also_inside_of_marks() -> None:
    [template] = marks.wordings("a\n<claim> so")["a"]
    assert not marks.MARK.search(template) and "[son|" in template


def test_print_is_still_read_where_a_point_is_shown() -> None:
    """The words for reading everything are asked of one place too."""
    scene = Scene(
        1.0, scene_of().background, (), (line("OPEN", 0.5, 0.2, (0, 0, 0)), line("7", 0.5, 0.8, (0, 0, 0)))
    )
    rng = Random(1)
    for _ in range(200):
        spatial = spatial_fact(rng, scene)
        if spatial is not None and spatial[0].answer in ("OPEN", "7"):
            other: Fact = reworded(rng, spatial[0])
            assert not re.search(r"\b(top|bottom|left|right) ", other.question)
