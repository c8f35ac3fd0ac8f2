"""The sentences of the wider world that its tokenizer is made from. The same ones every time."""

from random import Random

from kestrel_tools.scenes.phrases import IN_A_SENTENCE
from kestrel_tools.scenes.world import COLOURS, SHAPES, SIZES
from kestrel_tools.things.charts.subjects import LABELS, TITLES
from kestrel_tools.things.language import questions, talk, targets
from kestrel_tools.things.language.charts import facts as chart_facts
from kestrel_tools.things.language.fact import NUMBERS, ORDINALS
from kestrel_tools.things.language.relations import MOST_COUNTED, RELATIONS
from kestrel_tools.things.language.spelling import LEADS, TAILS, chosen
from kestrel_tools.things.names import ASKED_FOR, KINDS, first_nouns, plural, with_article
from kestrel_tools.things.vocabulary import WORDS

VOCABULARY = 1536

# What is said around the names. Each is put in often, so that its words become one token each.
SAID = """I see no things.
I see the dog, 3 in all.
I look at the whole picture.
I look at the dog and the cat.
From left to right: a small dog and a big cat. The text says nothing.
There are 3 things. There is 1 thing. There are 3 shapes. There is no dog. There are no grapes.
An empty picture. Only the text
Yes, there is a dog. No, there is no cat. Yes, the dog is left of the cat. No, the dog is not above the cat.
It is the dog. This is a dog. The dog is. The dog is at the top left. The dog is brown.
A bar chart titled Sales: A 12 and B 40. A line chart. The largest is A, the smallest is B.
The value of A is 12. A has the largest value. It has no title. a bar chart a line chart
yes no nothing none the same a drawing I can't tell.
There is no picture to look at. Use a full sentence. Answer in a sentence.
at the top left at the top right at the bottom left at the bottom right at the center"""
SKILLS = ("describe", "query", "detect", "point", "segment", "short", "normal", "long")  # ids 10 to 17


def corpus() -> list[str]:
    rng = Random(0)
    names = [name for noun in first_nouns() for name in (noun.name, *noun.also)]
    everyday = [*names, *SHAPES, *(one for one, _ in KINDS.values()), "shape", "thing", "object", "item"]
    named = [form for name in everyday for form in (f" {name}", f" {plural(name)}", f" {with_article(name)}")]
    answers = [noun.name for noun in first_nouns()] * 40 + [*COLOURS, *SHAPES, *SIZES, *NUMBERS] * 60
    asked = [_asked(rng, form, everyday) for form in _forms(questions.FIRST_QUESTIONS) for _ in range(40)]
    charts = [_asked(rng, form, TITLES) for form in _forms(chart_facts.FIRST_QUESTIONS) for _ in range(12)]
    small = [text for forms, answer in (*talk.SMALL_TALK, *talk.MEDIUM) for text in (*forms, answer)]
    talked = [chosen(rng, text) for text in (*small, *talk.UNANSWERABLE) for _ in range(12)]
    places = [f"{words} the" for forms in RELATIONS.values() for words in forms] * 30
    words = [form for word in WORDS for form in (word, f" {word}", word.title())]
    labels = [label for family in LABELS for label in family] + [*TITLES]
    rare = [*ASKED_FOR, *targets.ALL, *targets.SHAPES, *targets.TEXT, *targets.BARS, *targets.EXTREME_BARS]
    said = [*SAID.splitlines(), *SKILLS] * 150
    manners = [*LEADS, *TAILS, *IN_A_SENTENCE, *ORDINALS[:MOST_COUNTED]] * 20
    common = [*named * 25, *answers, *asked, *charts, *talked, *places, *said, *manners]
    return [*common, *words * 2, *labels * 4, *rare * 3]


def _forms(kinds: dict[str, tuple[str, ...]]) -> list[str]:
    return [form for forms in kinds.values() for form in forms]


def _asked(rng: Random, form: str, subjects: list[str] | tuple[str, ...]) -> str:
    for mark, verb in questions.VERBS:
        form = form.replace(mark, verb)
    return chosen(rng, form.format(*(f"the {rng.choice(subjects)}" for _ in range(3)))).lower()
