"""What is to drink on a menu, the fruit on a shopping list, and which of a few things is on it. No torch.

Of words that are made up, and of things that belong to a sort only for some people, nothing is certain: where
there are any, nobody is asked for all of the sort, nor told that there is none.
"""

from collections.abc import Mapping
from random import Random
from typing import NamedTuple

from kestrel_tools.things.language.fact import Fact, yes_no
from kestrel_tools.things.language.pages.questions import ask, read_table
from kestrel_tools.things.language.pages.view import View, shown
from kestrel_tools.things.pages.words import DISHES, DRINKS, GOODS, GROCERIES, listed

from .line_words import CLAIMS
from .values import Maker

ASKED, OFFERED = (read_table(CLAIMS)[kind] for kind in ("sorts", "offered"))


class Sort(NamedTuple):
    """Names that are of it to everybody, and names that are to some."""

    sure: frozenset[str]
    doubtful: frozenset[str] = frozenset()


def _ending(word: str) -> frozenset[str]:
    return frozenset(dish for dish in DISHES if dish.split()[-1] == word)


def _of(sure: str, doubtful: str = "") -> Sort:
    return Sort(frozenset(listed(sure)), frozenset(listed(doubtful)))


OF_MENUS = {
    "drinks": Sort(frozenset(DRINKS)),
    "dishes": Sort(frozenset(DISHES)),
    "soups": Sort(
        _ending("soup"), frozenset(listed("ramen, goulash, chili, beef stew, bean stew, chicken curry"))
    ),
    "salads": Sort(_ending("salad"), frozenset(listed("coleslaw, hummus, olives, cheese plate"))),
    "sweets": _of(
        "apple pie, cheesecake, brownie, chocolate cake, carrot cake, ice cream, pudding, tiramisu",
        """pancakes, waffles, porridge, granola, croissant, muffin, scone, fruit salad, rice pudding, yogurt,
        cocoa, hot chocolate, milkshake, smoothie, iced coffee, mocha, soda, cola, lemonade""",
    ),
}  # fmt: skip
OF_SHOPPING = {
    "fruits": _of(
        """apples, bananas, oranges, pears, grapes, lemons, limes, cherries, plums, peaches, melon, mango,
        berries""",
        "raisins, dates, nuts, almonds, tomatoes, cucumber, pumpkin, juice, jam",
    ),
    "vegetables": _of(
        "onions, carrots, lettuce, spinach, cabbage, broccoli, leeks, radishes, celery",
        """potatoes, garlic, tomatoes, cucumber, peas, beans, corn, pumpkin, mushrooms, parsley, basil, mint,
        pepper""",
    ),
}
SORTS = {"menu": OF_MENUS, "shopping list": OF_SHOPPING}
KNOWN = frozenset((*DISHES, *DRINKS, *GROCERIES, *GOODS))
MOST = 4  # of which all are told


def of_sort(rng: Random, view: View) -> Fact | None:
    """All of the sort, or whether there is any."""
    sorts = SORTS.get(view.kind)
    if sorts is None:
        return None
    name = rng.choice(tuple(sorts))
    sort = sorts[name]
    found = [one for one in view.listed if one.thing.said in sort.sure]
    doubtful = any(one.thing.said not in KNOWN or one.thing.said in sort.doubtful for one in view.listed)
    lines = (line for one in found for line in one.lines)
    evidence = shown(*lines) if found else ()
    if rng.random() < 0.5 and found and not doubtful and len(found) <= MOST:
        answer = ", ".join(one.thing.text for one in found)
        return Fact("page sort", ask(rng, ASKED[name]), answer, evidence=evidence)
    if not found and doubtful:
        return None
    return Fact("page sort", ask(rng, ASKED[f"any {name}"]), yes_no(bool(found)), evidence=evidence)


def which_there(rng: Random, view: View) -> Fact | None:
    """Which of two or three things is on it, or is not; or whether both are."""
    other, kind = view.absent(rng), rng.choice(("both", "which", "which not"))
    if other is None or len(view.listed) < 2:
        return None
    one, another = rng.sample(view.listed, 2)
    evidence = shown(one.row.label)
    if kind == "both":
        yes = rng.random() < 0.5
        second = another.thing.said if yes else other
        pair = rng.sample([one.thing.said, second], 2)
        question = ask(rng, OFFERED[kind], view.fields | {"x": pair[0], "y": pair[1]}, exact=True)
        return Fact("page which", question, yes_no(yes), evidence=evidence)
    if kind == "which":
        pair = rng.sample([one.thing.said, other], 2)
        question = ask(rng, OFFERED[kind], view.fields | {"x": pair[0], "y": pair[1]}, exact=True)
        return Fact("page which", question, one.thing.text, evidence=evidence)
    three = rng.sample([one.thing.said, another.thing.said, other], 3)
    question = ask(rng, OFFERED[kind], view.fields | dict(zip("xyz", three, strict=True)), exact=True)
    return Fact("page which", question, other)


SORT_MAKERS: Mapping[Maker, float] = {of_sort: 1.8, which_there: 0.8}
