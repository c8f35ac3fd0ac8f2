"""How people may put a question about a picture of the wider world. The answers are in `facts`."""

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import NamedTuple

from kestrel_tools.things.names import with_article

from .more import comparisons, one_thing
from .more import questions as more_questions
from .spelling import casual, chosen, introduced, punctuated, tidy

PICTURE = "[picture|image|picture|image|photo|pic|drawing|scene]"
HERE = f"[here|in [the|this] {PICTURE}|in it]"
SEE = f"[are there|are there {HERE}|do you see|can you see|do you count|are shown|are visible|are {HERE}]"
CARRIER = "[sign|poster|card|ticket|label|page|note|menu|board|banner|screen|flyer|notice|receipt]"
COLOUR = "color"  # `casual` makes it British now and then

# Of one, and of what stands in the plural.
VERBS = (
    *(("<is>", "is"), ("<Is>", "Is"), ("<does>", "does"), ("<Does>", "Does")),
    *(("<it>", "it"), ("<them>", "it")),
)
PLURAL_VERBS = (
    *(("<is>", "are"), ("<Is>", "Are"), ("<does>", "do"), ("<Does>", "Do")),
    *(("<it>", "they"), ("<them>", "them")),
)

# The tokenizer is made with these; more follow below.
FIRST_QUESTIONS: dict[str, tuple[str, ...]] = {
    "describe": (
        f"[What's|What is] [in|on|shown in|visible in] [the|this] {PICTURE}?",
        "[What do you see|What can you see]?",
        f"What do you see [here|in [the|this] {PICTURE}]?",
        f"[Describe|Please describe|Can you describe] [the|this] {PICTURE}[.|?|]",
        "[What's|What is] [shown here|here|in it]?",
        f"What does [the|this] {PICTURE} [show|contain|have in it]?",
        f"[What's|What is] [this|the] {PICTURE} [of|about]?",
        "Tell me what you see.",
        f"What [objects|things|items] [are|do you see|can you see] [here|in [the|this] {PICTURE}]?",
        "What is going on here?",
        f"[What all|What] is there in [the|this] {PICTURE}?",
    ),
    "this one": (
        "[What's|What is] this?",
        "[What's|What is] that?",
        "[What's|What is] [it|this thing|this object]?",
        "What [thing|object] is this?",
        f"What is [shown|depicted|drawn] [here|in [the|this] {PICTURE}]?",
        "Can you [identify|name] this[ object| thing|]?",
        "Name this[ object| thing|].",
        "Do you know what this is?",
        f"What [object|thing] is in [the|this] {PICTURE}?",
        "Which [object|thing] do you see?",
    ),
    "list": (
        "[List|Name|Enumerate] [all|all of|] the {}.",
        "[List|Name] [all|every one of the|the] {} [you see|you can see|in the picture|here].",
        "[What|Which] {} [are there|do you see|can you see|are shown|are here|are in this image]?",
        "[Give me|Make|Write] a list of [all|] the {}[.|, please.|]",
        "Tell me all the {}.",
        "[What are|Which are] the {} [here|in this picture|in the image]?",
        "Can you [list|name] [all|] the {}?",
    ),
    "count": (
        f"How many {{}} {SEE}?",
        f"How many {{}} {SEE}?",
        f"How many {{}} [does the {PICTURE} [have|show]|is there in total|are there in total|altogether]?",
        "[Count|Please count|Can you count] [the|all the|all|how many] {}[.|?|]",
        "[What's|What is] the [number|count|total number|amount] of {}?",
        "How many {}?",
        "Number of {}?",
        "[Tell me|Say] how many {} there are.",
        f"In [the|this] {PICTURE}, how many {{}} are there?",
    ),
    "presence": (
        f"Is there {{}}[| {HERE}]?",
        f"[Do|Can] you see {{}}[| {HERE}]?",
        f"Does [the|this] {PICTURE} [show|contain|have|include] {{}}?",
        f"Is {{}} [shown|visible|present|in [the|this] {PICTURE}]?",
        f"[Does it have|Is there perhaps|Is there also] {{}}[| {HERE}]?",
        "Can {} be seen[| here]?",
        "Is {} there?",
    ),
    "presence any": (
        f"Are there [any|some|any] {{}}[| {HERE}]?",
        "[Do|Can] you see [any|some|] {}?",
        f"Does [the|this] {PICTURE} [show|contain|have] any {{}}?",
        "Any {}[| here]?",
        "Are {} [visible|shown|present]?",
        f"Are there {{}}[| {HERE}]?",
        "Aren't there any {}?",
    ),
    "presence or": (
        f"Is there [either|] {{}} or {{}}[| {HERE}]?",
        "Do you see {} or {}?",
        "Can you see {} or {}[| here]?",
    ),
    "presence and": (
        f"[Are there both|Is there] {{}} and {{}}[| {HERE}]?",
        "Do you see [both|] {} and {}?",
        "Does the picture show {} and {}?",
    ),
    "colour": (
        f"[What|Which] {COLOUR} <is> {{}}?",
        f"[What's|What is] the {COLOUR} of {{}}?",
        f"[Tell me|Name] the {COLOUR} of {{}}.",
        f"[What|Which] {COLOUR} <does> {{}} have?",
        f"{{}}: [what|which] {COLOUR}?",
        f"[What's|What is] {{}}'s {COLOUR}?",
        f"Do you know [what|which] {COLOUR} {{}} <is>?",
    ),
    "is colour": ("<Is> {} {}?", "<Is> {} [really|actually|] {}?", "Would you say {} <is> {}?"),
    "ground": (
        f"[What|Which] {COLOUR} is the [background|ground|backdrop]?",
        f"[What's|What is] the {COLOUR} of the background?",
        f"[What's|What is] the background {COLOUR}?",
    ),
    "shape": (
        "[What|Which] shape is {}?",
        "[What|Which] shape [is|has] the {} [one|thing|object]?",
        "[What's|What is] [the shape of|] the {} [thing|object|one|shape]?",
        "[What's|What is] {}?",
        "[What|Which] [thing|object] is {}?",
    ),
    "size": (
        "How [big|large] <is> {}?",
        "What size <is> {}?",
        "<Is> {} [big or small|small or big|large or small]?",
        "[What's|What is] the size of {}?",
        "<Is> {} [a big one or a small one]?",
    ),
    "where": (
        "Where <is> {}?",
        "[Where's|Where is] {} [located|placed|in the picture|in the image|]?",
        f"Where in [the|this] {PICTURE} <is> {{}}?",
        "[What's|What is] the [position|location|place] of {}?",
        "In [which|what] [part|area|corner] of the [picture|image] <is> {}?",
        "Where can I [find|see] {}?",
        "Where do you see {}?",
    ),
    "relation": ("<Is> {} {} {}?", "<Is> {} {} {}, yes or no?", "Would you say {} <is> {} {}?"),
    "beside": (
        "[What's|What is] {} {}?",
        "[What|Which] [thing|object] is {} {}?",
        "What [do you see|can you see|is there|is located] {} {}?",
        "Which [things|objects] are {} {}?",
        "Name what is {} {}.",
    ),
    "nearest": (
        "[What's|What is] [nearest|closest|next] to {}?",
        "[What|Which] [thing|object] is [nearest|closest] to {}?",
        "[What's|What is] [right next to|next to|beside|near|close to] {}?",
        "[What's|What is] the neighbor of {}?",
    ),
    "most left": (
        "[What's|What is] [on|at] the [far|very|extreme] left?",
        "[What's|What is|Which is] the leftmost {}?",
        "Which {} is [furthest|farthest|most] [left|to the left]?",
        "Which {} is the [leftmost|furthest left]?",
        "[What's|What is] the first {} from the left?",
    ),
    "most right": (
        "[What's|What is] [on|at] the [far|very|extreme] right?",
        "[What's|What is|Which is] the rightmost {}?",
        "Which {} is [furthest|farthest|most] [right|to the right]?",
        "Which {} is the [rightmost|furthest right]?",
        "[What's|What is] the last {} on the right?",
    ),
    "most top": (
        "[What's|What is] at the [very|far] top?",
        "[What's|What is|Which is] the [topmost|highest|uppermost] {}?",
        "Which {} is [highest|the highest|furthest up|on top|closest to the top]?",
    ),
    "most bottom": (
        "[What's|What is] at the [very|far] bottom?",
        "[What's|What is|Which is] the [lowest|bottommost|lowermost] {}?",
        "Which {} is [lowest|the lowest|furthest down|closest to the bottom]?",
    ),
    "most big": (
        "[What's|What is|Which is] the [biggest|largest] {}?",
        "Which {} is [the biggest|the largest|biggest|largest]?",
        "[What|Which] is the [biggest|largest] [of all|of them all|one]?",
        "Which one is [the biggest|the largest|biggest]?",
        "Which {} takes up [most|the most] [space|room]?",
        "What is biggest?",
    ),
    "most small": (
        "[What's|What is|Which is] the [smallest|tiniest|littlest] {}?",
        "Which {} is [the smallest|smallest|the tiniest]?",
        "[What|Which] is the smallest [of all|of them all|one]?",
        "Which one is [the smallest|smallest]?",
        "What is smallest?",
    ),
    "ordinal": (
        "[What's|What is] the {} [thing|object|item] from the {}?",
        "[What|Which] [thing|object] is {} from the {}?",
        "Counting from the {1}, what is the {0} [thing|object]?",
    ),
    "bigger of": (
        "[Which|What] is [bigger|larger], {} or {}?",
        "[Which one|Which] is [bigger|larger]: {} or {}?",
        "Is {} or {} [bigger|larger]?",
    ),
    "smaller of": ("[Which|What] is smaller, {} or {}?", "Which one is smaller: {} or {}?"),
    "compare size": ("<Is> {} {} than {}?", "<Is> {} {} than {}, yes or no?"),
    "more of": (
        "Are there more {} than {}?",
        "Do you see more {} than {}?",
        "Is the number of {} larger than the number of {}?",
    ),
    "which more": (
        "What [is there|do you see] more of, {} or {}?",
        "Are there more {} or {}?",
        "Which are there more of: {} or {}?",
    ),
    "kind": (
        "[What|Which] [kind|type|sort] of {} is [this|that|it|shown|in the picture|there]?",
        "[What|Which] {} is [this|that|it|shown|in the picture|there|here]?",
        "[What|Which] {} do you see?",
    ),
    "read": (
        "What does [the|this] [text|sign|writing|word] say?",
        f"[What's|What is] [written|printed] [here|there|in [the|this] {PICTURE}|on it]?",
        "[Read|Please read|Can you read] [the|this] [text|sign|word|writing][.|?|]",
        f"[What|Which] [text|word] is [shown|written|in [the|this] {PICTURE}|printed here]?",
        "What does it say?",
        "[What|Which] [word|words|text] do you see?",
        "[What's|What is] the [text|word|writing]?",
        "Read it[ to me| out loud| aloud|].",
        "Transcribe the text.",
    ),
    "read number": (
        "[What|Which] number is [shown|written|in the picture|this|printed here]?",
        "[What|Which] number do you see?",
        "[What's|What is] the number?",
        "[Read|Tell me] the number.",
    ),
    "has text": (
        "Is there [any|some|] [text|writing|print]?",
        f"Is there [any|] text in [the|this] {PICTURE}?",
        "Is [anything|something] written [here|there|in it]?",
        "[Do|Can] you see [any|] [words|letters|text|writing]?",
        "Does it say anything?",
    ),
    "this": (
        "[What's|What is] this?",
        "[What's|What is] [at this point|at this spot|at this place|here|there]?",
        "[What's|What is] in [this|the] [box|area|region]?",
        "[What|Which] [object|thing] is this?",
        "What do you see here?",
        "Name this.",
    ),
    "this colour": (f"[What|Which] {COLOUR} [is|has] [this|it|that]?", f"[What's|What is] its {COLOUR}?"),
    "is empty": (f"Is [the|this] {PICTURE} empty?", "Is there nothing[ here|]?", "Is it [blank|empty]?"),
    "is anything": (f"Is there [anything|something] in [the|this] {PICTURE}?", "Do you see anything?"),
}  # fmt: skip


LATER = {
    "describe": (
        f"[Describe|Sum up|Caption] [the|this] {PICTURE} [briefly|in short|in a sentence].",
        f"[Describe|What's on|What is on|What do you see on] [the|this] {CARRIER}[?|]",
    ),
    "presence": (
        f"[There's|There is] {{}} [here|in [the|this] {PICTURE}|], [isn't there|correct|is that true]?",
    ),
    "is this": (
        "Is [this|it|that] {}?",
        "Is [this|it|that] [really|supposed to be|maybe|perhaps|meant to be] {}?",
        "[This|That|It] is {}, [right|isn't it|correct|no]?",
        f"Is {{}} what [the|this] {PICTURE} shows?",
        "Would you [call this|say this is|say it's] {}?",
        "Could [this|it|that] be {}?",
        "Am I looking at {}?",
    ),
    "where": (
        "[I need|I want|We need|I am looking for] {}[.|,|!] [Where should [I|we] look|Any idea where]?",
        "[I|We] [cannot find|can't find|can't see|don't see] {}[.|,|!] [Where <is> <it>|Where did <it> go]?",
        "[Someone|Somebody|He|She] [put|left|hid|drew] {} [here|somewhere|in there][.|,] [Where|But where]?",
        "[Help me|Can you help me|Please help me] [find|spot|locate] {}.",
        "Point me to {}: in [which|what] part of the picture <is> <it>?",
    ),
    "colour": (
        f"[Look at|I like|I see] {{}}[.|,|!] [What|Which] {COLOUR} <is> <it>?",
        f"[What about|And|How about] {{}}, [what|which] {COLOUR} <is> <it>?",
        f"[Someone|Somebody] painted {{}}[.|,] [In which|In what] {COLOUR}?",
    ),
    "kind": (
        "[What's|What is] the name of the {}?",
        "What do you call [the|this|that] {}?",
    ),
    "read": (
        f"[Read|Transcribe|Write down] [all|everything] [that is printed|there is|] on [the|this] {CARRIER}.",
        f"What is [written|printed] on [the|this] {CARRIER}?",
        f"What does [the|this] {CARRIER} [say|tell us]?",
        "[Read|Tell me] [all|all of|] the [words|text|writing|lettering|handwriting] [here|for me|aloud|].",
    ),
}
QUESTIONS = {
    kind: (*FIRST_QUESTIONS.get(kind, ()), *LATER.get(kind, ())) for kind in (FIRST_QUESTIONS | LATER)
}

ARTICLE = re.compile("^(?:the|an?) ")
# In training alone.
MORE: dict[str, tuple[str, ...]] = more_questions.MORE | one_thing.MORE | comparisons.MORE


class Asking(NamedTuple):
    """What a question was made of, so that `rewording` can put it in other words."""

    plain: str  # before somebody typed it
    more: tuple[str, ...] = ()  # other templates for it
    subjects: tuple[str, ...] = ()
    many: bool = False
    named: bool = False
    exact: bool = False


class Question(str):
    """A question as somebody typed it, and what it was made of."""

    asking: Asking

    def __new__(cls, typed: str, asking: Asking) -> "Question":
        question = super().__new__(cls, typed)
        question.asking = asking
        return question


class Subject(str):
    """What a question is about: "the dog", which templates may also call "dog" or "a dog"."""

    def __format__(self, way: str) -> str:
        if not way:
            return str(self)
        bare = ARTICLE.sub("", self)
        return bare if way == "bare" else with_article(bare)


def asked(
    rng: Random,
    kind: str,
    *subjects: str,
    many: bool = False,
    named: bool = False,
    exact: bool = False,
    among: Mapping[str, tuple[str, ...]] = QUESTIONS,
    more: Mapping[str, tuple[str, ...]] | None = None,
) -> Question:
    """A question of that kind about the subjects.

    `many`: what is asked about takes "are". `named`: the first subject must be said. `exact`: the subjects
    are spelt as they are. `more`: templates that are used in training alone.
    """
    templates = with_subject(among[kind]) if named else among[kind]
    plain = filled(rng, rng.choice(templates), subjects, many)
    typed = introduced(rng, punctuated(rng, plain) if exact else casual(rng, plain))
    if more is None:
        more = MORE if among is QUESTIONS else {}
    return Question(typed, Asking(plain, more.get(kind, ()), subjects, many, named, exact))


def with_subject(templates: Sequence[str]) -> list[str]:
    return [template for template in templates if "{" in template]


def filled(rng: Random, template: str, subjects: Sequence[str], many: bool) -> str:
    if "<" in template:
        for mark, verb in PLURAL_VERBS if many else VERBS:
            template = template.replace(mark, verb)
    return tidy(chosen(rng, template.format(*map(Subject, subjects))))
