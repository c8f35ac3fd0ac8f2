"""Traits as training asks for them besides: more of them, and all in more words. The score never asks so.

Scenes and answers are those of `facts`. No torch.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from random import Random

from kestrel_tools.things.language.fact import Fact
from kestrel_tools.things.language.more.marks import wordings
from kestrel_tools.things.scene import Scene

from . import facts, reallife
from .lists import everyday, said
from .table import TRAITS, Form, Trait, by_thing, form_of, read

OFTEN = 3.0  # as often as others, those that are new or that many people ask for
# What a form says as it stands in a wording: {w} its words, {my} the same of one's own, {o} the gerund, the
# base of the verb, or who does it; {r} what follows "has".
WHICH = wordings("""
you
What [here|] [can|could|would|do] you {w}?
[Which|What] [of these|of them|thing here] [would|do|can] you {w}?
[I'd like|I want|I need] something [to|I can|I could] {my}<then> [what is there|what do you have]?
Something to {my}[, please| please|, pls].
What is there to {w} [here|]?
[Find|Show|Get] me something to {my}.
Anything [here|] I can {my}? What?
What [in <thepic>|here] do people {w}?

to
What is used [to {w}|for {o}] [here|]?
[What|Which of these] [do|would|can] you use [to {w}|for {o}]?
What do [I|you|we] need [to {w}|for {o}]?
I [want|need|have|would like|am trying] to {my}<then> [what do I need|what should I take|what can I use]?
I need something for {o}<then> [what is there|what do you have|what do you see]?
[Find|Point out|Name] [the right thing|what I need|something] for {o}.
[What|What here] is [there|good|right] for {o}?
With what [can|do|could] you {w}?
My <kid> wants to {w}<then> what [is good|is there|do you see] for that?
{o}<then> what [do I take|do I need|is for that]?

by
Imagine you are {o}<then> what [here|] would you {w}?
[What|Which of these] would [you|I] {w} as {o}?

by one
[What|Which of these] does {o} [usually|normally|] {w}?

can
[What|Which of these] [could|might|can] {w} [here|]?
Something [here|] can {w}<then> what?
[Can|Could] anything [here|] {w}? What?

is
[What|Which of these] [here|] [is|would be] {w}?
Something [here|in <thepic>] is {w}<then> what?
Is anything [here|] {w}? What?
[Find|Name] [something that|what] is {w}.

does
[What|Which of these] [here|in <thepic>|] {w}?
Something [here|in <thepic>] {w}<then> what [is it|]?
Does anything [here|] {o}? What?
[Find|Name] [something that|what] {w}.

has
What do you see with {r} [here|]?
[Find|Name|Show me] [something|what you see] with {r}.
Something [here|] with {r}<then> what [is it|]?
""")
WHETHER = wordings("""
you
Is there [anything|something] [here|] to {w}?
Anything to {w} [here|]?
[Do|Can] you see anything [you|one|I] could {w}?
Would I find something to {my} [here|]?

to
Is there [anything|something] [here|] for {o}?
Could I use [anything|something] [here|] for {o}?
I [want|need|have] to {my}<then> [is there anything for that|do you see something for that]?

by
Is there anything [here|] {o} [would|might] {w}?

can
[Can|Could] [anything|something] [here|in <thepic>] {w}?

is
Is [anything|something] [here|in <thepic>] {w}?

does
Does [anything|something] [here|in <thepic>] {o}?

has
Is there [anything|something] with {r} [here|]?
""")
YOUR = re.compile(r"\byour\b")
# Those that begin so have further wordings: what has wings, and what one person does.
HAS, SINGLE = re.compile("has (?!to )"), re.compile("an? ")


def spoken(
    trait: Trait, among: dict[str, tuple[str, ...]], own: dict[Form, tuple[str, ...]]
) -> tuple[str, ...]:
    """All wordings for a trait: those of its own, and those of its forms."""
    found = [wording for form in trait.forms for wording in own.get(form, ())]
    for form in trait.forms:
        words = form.words.replace(" ~", "").replace("~ ", "")
        kinds = [form.kind]
        if form.kind == "does" and HAS.match(words):
            kinds.append("has")
        if form.kind == "by" and SINGLE.match(form.other):
            kinds.append("by one")
        parts = {
            "w": words,
            "my": YOUR.sub("my", words),
            "o": form.other,
            "r": words.removeprefix("has "),
        }
        found += [wording.format_map(parts) for kind in kinds for wording in among.get(kind, ())]
    return tuple(found)


def _by_form(table: dict[str, tuple[str, ...]]) -> dict[Form, tuple[str, ...]]:
    return {form_of(words): templates for words, templates in table.items()}


OWN_WHICH, OWN_WHETHER = _by_form(said.WHICH), _by_form(said.WHETHER)
NEW = tuple(read(everyday.TABLE))
# One of the faces that are called sad has no tears: that it cries is not asked here.
LEFT_OUT = form_of("is crying")


def _everyday() -> facts.Pool:
    traits, asked_for = [], set()
    for trait in (*TRAITS, *NEW):
        if LEFT_OUT in trait.forms:
            continue
        which = (*trait.which, *spoken(trait, WHICH, OWN_WHICH))
        whether = (*trait.whether, *spoken(trait, WHETHER, OWN_WHETHER))
        traits.append(replace(trait, which=which, whether=whether))
        if trait in NEW or not OWN_WHICH.keys().isdisjoint(trait.forms):
            asked_for.add(trait.forms)
    return facts.Pool(
        tuple(traits),
        by_thing(traits, lambda trait: OFTEN if trait.forms in asked_for else 1.0),
        in_other_words=0.8,
    )


EVERYDAY = _everyday()


def everyday_trait(rng: Random, scene: Scene) -> Fact | None:
    return facts.trait(rng, scene, EVERYDAY)


WEIGHTS: dict[Callable[[Random, Scene], Fact | None], float] = {everyday_trait: 2.6, reallife.compared: 0.8}
