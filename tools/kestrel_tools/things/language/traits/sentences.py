"""Questions about traits, out of the clauses and sentences of `words`."""

import re
from functools import cache, lru_cache
from random import Random

from kestrel_tools.things.language.questions import PLURAL_VERBS, VERBS
from kestrel_tools.things.language.spelling import casual, chosen, introduced, tidy

from .table import CONFINED, Form
from .words import CLAUSES, CONFINED_TO, FRAMES, SOMETHING, UNCONFINED, WHO, YOU

NEEDED: dict[str, frozenset[str]] = {
    "one": frozenset(("that", "which")),
    "none": frozenset(("that", "which")),
    "only one": frozenset(("that", "says")),
    "many": frozenset(("that_many", "which_many")),
    "count": frozenset(("that_many", "which_many", "says")),
    "any": frozenset(("any",)),
    "all": frozenset(("all", "says")),
    "it": frozenset(("is_it", "says")),
    "two": frozenset(("which",)),
    "not": frozenset(("not",)),
    "not many": frozenset(("not",)),
    "only not": frozenset(("not",)),
    "where": frozenset(("that",)),
    "colour": frozenset(("that",)),
}
ANYBODY = re.compile("|".join(map(re.escape, (WHO, YOU, "[you|I|we]"))))
DENIES = re.compile(r"\b(no|not|cannot|only)\b")
MARKS = {False: (*VERBS, ("<Does>", "Does")), True: (*PLURAL_VERBS, ("<Does>", "Do"))}


@cache
def clauses_of(form: Form) -> dict[str, str]:
    """The clauses of a form, without what the frames fill in."""
    bare = form.words.replace(" ~", "").replace("~ ", "")
    filled = {
        "w": bare,
        "m": form.many,
        "o": form.other,
        "x": form.words.replace("~", "<this>"),
        "x_any": form.words.replace("~", "any of {these}"),
        "x_all": form.words.replace("~", "all of {these}"),
        "these": "{these}",
        "it": "<this>",
    }
    clauses = CLAUSES[form.kind]
    if "your" in form.words:
        clauses = {name: ANYBODY.sub("you", clause) for name, clause in clauses.items()}
    return {name: clause.format_map(filled) for name, clause in clauses.items()}


@cache
def fits(form: Form, frame: str) -> bool:
    """Whether it can be asked so: what a king would wear, but not whether he would wear a shoe."""
    if "not" in frame and DENIES.search(form.words):
        return False
    return NEEDED[frame] <= CLAUSES[form.kind].keys()


@cache
def words_for(kind: str, at: int, sort: str) -> dict[str, str]:
    """What stands for the things of a kind in a frame, or for all things."""
    if not kind:
        return UNCONFINED[sort]
    one, many = CONFINED[kind][at]
    a_one = f"{'an' if one[0] in 'aeiou' else 'a'} {one}"
    return {name: words.format(one=one, many=many, a_one=a_one) for name, words in CONFINED_TO.items()}


def asked(
    rng: Random,
    frame: str,
    form: Form,
    kind: str = "",
    it: str = "",
    others: tuple[str, str] = ("", ""),
    many: bool = False,
    sort: str = "object",
) -> str:
    """A question of that frame, about things of a kind or about all.

    `it` is the one thing that it is about, `others` are two. `many`: that one takes "are". `sort` is what
    those that have the trait are called: object, animal or thing.
    """
    filled = _filled(form, kind, rng.randrange(len(CONFINED[kind])) if kind else 0, sort, many)
    template = rng.choice(FRAMES[frame]).format_map(filled)
    return finished(
        rng, template.replace("<a>", others[0]).replace("<b>", others[1]).replace("<this>", it), many
    )


@lru_cache(4096)
def _filled(form: Form, kind: str, at: int, sort: str, many: bool) -> dict[str, str]:
    """What stands in the frames; the names of things are left as marks."""
    words = words_for(kind, at, sort)
    slots = {name: part.replace("{these}", words["these"]) for name, part in clauses_of(form).items()}
    return {
        **words,
        **_things_that(form, words, slots),
        "that": slots["that"],
        "that_many": slots["that_many"],
        "that_not": slots.get("that_not", ""),
        "tell": slots.get("tell", slots["which"]),
        "tell_many": slots.get("tell", slots["which_many"]),
        "w_which": slots["which"],
        "w_which_many": slots["which_many"],
        "w_any": slots.get("any", ""),
        "w_all": slots.get("all", ""),
        "w_is_it": slots.get("is_it", ""),
        "w_says": slots.get("says_many" if many else "says", ""),
        "w_they": slots.get("they", slots["which_many"]),
        "w_not": slots.get("not", ""),
        "w_not_many": slots.get("not_many", ""),
        "it": "<this>",
        "a": "<a>",
        "b": "<b>",
    }


def _things_that(form: Form, words: dict[str, str], slots: dict[str, str]) -> dict[str, str]:
    """Something that flies, or a tool."""
    that, that_many = slots["that"], slots["that_many"]
    if form.kind == "one":
        bare = form.words.partition(" ")[2]
        return {
            "one_that": bare,
            "something_that": form.words,
            "anything_that": f"[any|{form.words.partition(' ')[0]}] {bare}",
            "any_that": f" {bare}",
            "plain_that": form.words,
            "the_one_that": f"the {bare}",
            "many_that": form.many,
            "the_many_that": f"the {form.many}",
            "everything_that": f"[every {bare}|all {form.many}]",
        }
    return {
        "one_that": f"{words['one']} {that}",
        "something_that": f"{words['something']} {that}",
        "anything_that": f"{words['anything']} {that}",
        "any_that": f"{words['any']} {that}",
        "plain_that": f"{SOMETHING} {that}",
        "the_one_that": f"{words['the_one']} {that}",
        "many_that": f"{words['many']} {that_many}",
        "the_many_that": f"{words['the_many']} {that_many}",
        "everything_that": f"{words['everything']} {that}",
    }


def finished(rng: Random, template: str, many: bool = False) -> str:
    """One of its sentences, as somebody may type it."""
    if "<" in template:
        for mark, verb in MARKS[many]:
            template = template.replace(mark, verb)
    return introduced(rng, casual(rng, tidy(chosen(rng, template))))


@cache
def label_of(form: Form, kind: str) -> str:
    """The things that have the trait, in one sentence part: "animals that give us milk"."""
    rng = Random(form.words)
    many = CONFINED[kind][0][1] if kind else "things"
    return form.many if form.kind == "one" else chosen(rng, f"{many} {clauses_of(form)['that_many']}")
