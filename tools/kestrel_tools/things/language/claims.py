"""Whether a number that somebody names is right, and questions of two parts. No torch.

A bare number means exactly so many: "are there two foxes?" is answered with no where there are three. The
answer to two parts is one for each, in the order of the question: "apple, 3".
"""

from random import Random

from kestrel_tools.things.names import NUMBERS, is_plural, with_article
from kestrel_tools.things.scene import Item, Scene

from .fact import Fact, between_places, place
from .more.marks import wordings
from .questions import asked as asked_of
from .wanted import Wanted, of_kind, only, wanted

# {} is a number with its noun: "two foxes", or "one fox" below.
QUESTIONS = wordings("""
exactly
Are there [exactly|] {} [<here>|]?
Are there exactly {} [<here>|]?
[Do|Can] you [see|count|find] [exactly|] {} [<here>|]?
<know> <whether> there are [exactly|] {} [<here>|]<end>
<claim> there are [exactly|] {} [<here>|]<then> <right>?
My <kid> [counts|counted|sees] {}<then> <right>?
I [count|counted|see] {}<then> <right>?
There are {} [<here>|], [aren't there|right|correct|yes]?
Is it [true|correct|right] that there are [exactly|] {} [<here>|]?
{}[, yes or no|, right|, is that right|, correct]?
Does <thepic> [show|contain|have|include] [exactly|] {}?
Did <they> draw [exactly|] {}?
{}, no more and no less<then> <right>?
There should be {}<then> [Is that the case|Are there|Is the number right]?
Can you confirm that there are {}?
We [bought|ordered|expected|need] {}<then> Is that what you [see|count] [here|]?

one
Is there [just|only|exactly] {} [<here>|]?
Do you see [just|only|exactly] {} [<here>|]?
<know> <whether> there is [just|only|exactly] {} [<here>|]<end>
<claim> there is [just|only|exactly] {} [<here>|]<then> <right>?
Only {} [<here>|][?|]
Is it [true|correct] that there is [just|only] {}?
Did <they> draw [just|only] {}?
There is [just|only] {}, [right|correct|isn't there]?

several
Is there more than {} [<here>|]?
Are there more than {} [<here>|]?
[Do|Can] you [see|find|count] more than {} [<here>|]?
<know> <whether> there is more than {} [<here>|]<end>
More than {} [<here>|][?|]
<claim> there is more than {}<then> <right>?
Does <thepic> [show|have|contain] more than {}?
Did <they> draw more than {}?

at least
Are there [at least|no fewer than|no less than] {} [<here>|]?
[Do|Can] you [see|find|count] at least {} [<here>|]?
<know> <whether> there are at least {} [<here>|]<end>
At least {} [<here>|][?|]
<claim> there are at least {}<then> <right>?
I need at least {}<then> Are there [enough|that many] [here|]?
Does <thepic> [show|have|contain] at least {}?
Are there {} or more [<here>|]?

more than
Are there more than {} [<here>|]?
[Do|Can] you [see|find|count] more than {} [<here>|]?
<know> <whether> there are more than {} [<here>|]<end>
More than {}[?|]
<claim> there are more than {}<then> <right>?
Does <thepic> [show|have|contain] more than {}?

fewer than
Are there [fewer|less] than {} [<here>|]?
[Do|Can] you [see|count] [fewer|less] than {}?
<know> <whether> there are [fewer|less] than {} [<here>|]<end>
[Fewer|Less] than {}[?|]
<claim> there are [fewer|less] than {}<then> <right>?

pair
Is there a pair of {} [<here>|]?
Do you see a pair of {} [<here>|]?
<know> <whether> there is a pair of {}<end>
A pair of {}, [right|correct|is that right]?
Did <they> draw a pair of {}?

name and number
[What|Which] {} is there, and how many [of it|of them|]?
[What|Which] {} do you see and how many [of it|of them|]?
[Tell me|<know>] [what|which] {} [there is|you see] and how many<end>
Name the {} and [count it|say how many there are|tell me how many].
[What|Which] {} did <they> draw, and how [many|often]?
Which {} and how many?
[Name|Kind] of {} and number, please.

name and colour
[What|Which] {} is there, and [what|which] color [is it|does it have]?
[What|Which] {} do you see and what color is it?
<know> [what|which] {} there is and [what|which] color it [is|has]<end>
Name the {} and its color.
[What|Which] {} did <they> draw, and in [what|which] color?
Which {} and [what|which] color?
[Name|Kind] of {} and color, please.

name and place
[What|Which] {} is there, and where [is it|]?
[What|Which] {} do you see, and where?
<know> [what|which] {} there is and where it is<end>
Name the {} and [say|tell me] where it is.
Which {} and where?
There is {:a}<then> what is it and where is it?

colour and place
[What|Which] color is {}, and where is it?
First the color of {}, then its place <please>
What color is {}, and in which part of <thepic> is it?
<know> [what|which] color {} is and where it is<end>
{}: color and place?
[Give me|I need] the color of {} and its place.
""")
CLAIMS = {
    "exactly": 0.45, "one": 0.14, "several": 0.12, "at least": 0.1, "more than": 0.08, "fewer than": 0.05,
    "pair": 0.06,
}  # fmt: skip
TRUE = 0.5  # of the numbers that are named
SELDOM = 0.7
MOST = 9


def claim(rng: Random, scene: Scene) -> Fact | None:
    """Whether there are two foxes, more than one, at least three, a pair."""
    found = wanted(rng, scene, 0.88)
    there = len(found.items)
    if with_article(found.one) == found.one or there > MOST:
        return None  # nobody says "two scissors"
    [kind] = rng.choices(tuple(CLAIMS), tuple(CLAIMS.values()))
    if there < 2 and kind != "one" and rng.random() < SELDOM:
        return None  # or no would be right too often
    named = max(2, _named(rng, there))
    if kind == "pair" and (there > 2 or len({item.noun for item in found.items}) > 1 or " of " in found.many):
        return None  # two of the three are one, and a dog and a cat may be none
    if kind == "fewer than" and there == 0:
        return None
    right = {
        "exactly": there == named,
        "one": there == 1,
        "several": there > 1,
        "at least": there >= named,
        "more than": there > named,
        "fewer than": there < named,
        "pair": there == 2,
    }[kind]
    words = {"one": f"one {found.one}", "several": f"one {found.one}", "pair": found.many}.get(kind)
    if words is None:
        words = f"{NUMBERS[named] if rng.random() < 0.7 else named} {found.many}"
    question = asked_of(rng, kind, words, among=QUESTIONS)
    answer = "yes" if right else "no"
    return Fact("claim", question, answer, _told(answer, found), ((f"the {found.right}", found.items),))


def _named(rng: Random, there: int) -> int:
    return there if rng.random() < TRUE else there + rng.choice((-2, -1, -1, 1, 1, 2))


def _told(answer: str, found: Wanted) -> str:
    number = len(found.items)
    told = f"is one {found.one}" if number == 1 else f"are {NUMBERS[number]} {found.many}"
    return f"{answer.capitalize()}, there {told}."


def two_parts(rng: Random, scene: Scene) -> Fact | None:
    """Which animal there is and how many of it, of which colour, or where."""
    if rng.random() < 0.25:
        return _colour_and_place(rng, scene)
    kinds = [kind for item in scene.items for kind in item.known_as.kinds if kind != "shape"]
    found = of_kind(scene, rng.choice(kinds)) if kinds else None
    if found is None or len({item.noun for item in found.items}) != 1:
        return None
    item, evidence = found.items[0], ((f"the {found.right}", found.items),)
    if len(found.items) > 1 or rng.random() < 0.2:
        if is_plural(item.noun):
            return None  # one bunch of grapes, or so many grapes?
        return _both(rng, "name and number", found.one, item.name, str(len(found.items)), evidence)
    if rng.random() < 0.6:
        if not item.colour:
            return None
        return _both(rng, "name and colour", found.one, item.name, item.colour, evidence)
    if between_places(item):
        return None
    return _both(rng, "name and place", found.one, item.name, place(item), evidence)


def _colour_and_place(rng: Random, scene: Scene) -> Fact | None:
    found = only(rng, scene)
    if found is None or not found[1].colour or found[1].colour in found[0].split() or is_plural(found[0]):
        return None
    words, item = found
    if between_places(item):
        return None
    evidence = ((f"the {words}", (item,)),)
    return _both(rng, "colour and place", f"the {words}", item.colour, place(item), evidence)


def _both(
    rng: Random,
    kind: str,
    subject: str,
    first: str,
    second: str,
    evidence: tuple[tuple[str, tuple[Item, ...]], ...],
) -> Fact:
    question = asked_of(rng, kind, subject, among=QUESTIONS)
    return Fact("two parts", question, f"{first}, {second}", evidence=evidence)
