"""How people ask about pages, one template a line. The answers are in `facts`.

"= menu < prices" begins what is asked of a menu, beside what is asked of all prices, and "- value" a kind of
question. {a} and {b} are things with their article, {x} and {y} the same without it; {v} is a value as it is
printed, {w} its number, {o} or {f} that as "second", {d} a day, {t} a time; {k} is "second" or "last"; {p} is
what the page is called, {e} the event, {n} and {ns} what the page lists, {u} "gate" or "train"; <is>, <does>,
<was>, <it> and <many> go with the first thing. Brackets are as everywhere: `spelling`.
"""

from collections.abc import Mapping, Sequence
from random import Random

from kestrel_tools.things.language.questions import PLURAL_VERBS, VERBS
from kestrel_tools.things.language.spelling import casual, chosen, introduced, punctuated, tidy

from .list_questions import LISTS
from .other_questions import OTHERS
from .role_questions import ROLES
from .time_questions import TIMES

SMALL = 0.07  # of the questions are all in small letters
ONE = (*VERBS, ("<Does>", "Does"), ("<was>", "was"), ("<many>", "much"))
SEVERAL = (*PLURAL_VERBS, ("<Does>", "Do"), ("<was>", "were"), ("<many>", "many"))

IN_GENERAL = """
= general
- read
[Read|Please read|Can you read] [it|this|everything|the whole thing|all of it] [to me|out loud|aloud|][.|?|]
[Could|Would] you [please|kindly|] read [it|this|everything|the whole page|all of it] [to me|for me|aloud|]?
What does [it|this|the page|the whole thing|the {p}] say?
[What's|What is] [written|printed] [here|on this|on it|on the {p}]?
[I can't read this|I forgot my glasses|My eyes are bad], [what does it say|what is written there]?
[I can't see well|I'm blind|I don't have my glasses]. [Please read it all|Read it to me|Tell me what it says].
[Transcribe|OCR|Extract|Copy|Type out] [all|] the text[.| please|]
Give me [all|] the text [in this image|you can see|line by line|on it|].
[Would|Could] you [kindly|please|] read [me|] what is [written|printed] [here|there|on it]?
[Every word on it, please.|I need every word of it.|Return the full text.]
What all is [written|printed] there?
Read [everything|it all] from top to bottom.
[What|Which] text is on the {p}?
- title
[What's|What is] the [title|heading|headline|header] [of this|here|on it|of the {p}|]?
What does the [heading|title|headline] say?
[What's|What is] [written|printed] at the [very|] top?
[Read|Tell] me [just|only|] the [heading|title|headline].
How is [it|this|the {p}] [titled|headed]?
What does it say [at the top|on top|above everything else|up there]?
Title?
- first line
[What's|What is] the [first|top|uppermost] line?
What does the [first|top] line say?
[Read|Tell] me [just|only|] the first line.
How does [the text|it] [begin|start]?
- last line
[What's|What is] the [last|bottom|lowest] line?
What does the [last|bottom] line say?
[Read|Tell] me [just|only|] the last line.
[What's|What is] [written|printed] at the [very|] bottom?
How does [the text|it] end?
- nth line
[What's|What is] the {k} line?
What does the {k} line say?
[Read|Tell] me [just|only|] the {k} line.
What [is|stands] in the {k} line?
- number of lines
How many lines [of text|] [are there|do you see|does it have]?
Count the lines [of text|].
- says
Does it say {x} [anywhere|somewhere|]?
Is [the word|] {x} [written|printed|mentioned] [anywhere|somewhere|here|on it|]?
Can you [find|see] [the word|] {x} [on it|here|anywhere|]?
Does [the text|the {p}|it] [contain|mention|include] [the word|] {x}?
Do you [see|read] {x} [there|anywhere|]?
[I'm looking for|Search for] the word {x}. Is it [there|on it]?
{x}: is that on it?
- says number
Does it say {x} [anywhere|somewhere|]?
Is {x} [written|printed|mentioned] [anywhere|somewhere|here|on it|]?
Can you [find|see] {x} [on it|here|anywhere|]?
Does [the text|the {p}|it] [contain|include] {x}?
- about
Is there anything about {x}?
Does it say anything about {x}?
Anything about {x}?
Is {x} mentioned?
- value
What does it say [next to|beside|for] {x}?
[What's|What is] [printed|written|] [next to|beside] {x}?
[What's|What is] the [value|entry] for {x}?
{x}?
- nth
[What's|What is] the {k} [thing|item|entry|{n}] [on the {p}|on it|on the list|]?
Which [{n}|one] [is|comes] {k}?
[What's|What is] listed {k}?
Tell me [just|only|] the {k} [one|{n}].
- kind
What [kind|sort|type] of [document|page|thing] is [this|it]?
What [is this|am I holding|do I have here]? [A menu, a letter, what?|Which kind of document?]
[Which|What] kind of document [do you see|is shown]?
- is kind
Is [this|it|that] {x}?
Would you say this is {x}?
Am I [looking at|holding] {x}?
Is [this|it] {x}, yes or no?
- kind or
Is [this|it|that] {x} or {y}?
Is [this|it] {x}, or is it {y}?
- picture
[What|Which] [picture|drawing] is [on it|next to the text|beside the text|there|on the {p}]?
[What's|What is] [drawn|shown|pictured] [beside|next to|on] the [text|words|writing|{p}]?
Apart from the text, what [do you see|is there|is shown]?
What is the picture [of|on it of]?
What else is on it besides the text?
- unknown
Who [wrote|typed|printed|made|designed] [this|it]?
When was this [photo taken|picture taken|printed]?
[Who took|Who is the person that took] this [photo|picture]?
How long did it take to write this?
Where was this [photo|picture] taken?
- price unknown
How much <is> {a}?
What <does> {a} cost?
[What's|What is] the price of {a}?
How much money [do I need|will I spend] for {a}?
- has picture
Is there [a|any] [picture|drawing] [on it|beside the text|too|]?
Does it have a picture?
"""


def read_table(text: str) -> dict[str, dict[str, tuple[str, ...]]]:
    """The templates of each kind of question, by the kind of page."""
    pages: dict[str, dict[str, tuple[str, ...]]] = {}
    page: dict[str, tuple[str, ...]] = {}
    kind = ""
    for line in filter(None, text.splitlines()):
        if line.startswith("= "):
            name, _, base = line[2:].partition(" < ")
            page = pages[name] = dict(pages[base]) if base else {}
        elif line.startswith("- "):
            kind = line[2:]
            page[kind] = ()
        else:
            page[kind] += (line,)
    return pages


ASKED = (
    read_table(LISTS) | read_table(TIMES) | read_table(OTHERS) | read_table(ROLES) | read_table(IN_GENERAL)
)

GENERAL = ASKED["general"]


def ask(
    rng: Random,
    templates: Sequence[str],
    fields: Mapping[str, str] | None = None,
    many: bool = False,
    exact: bool = False,
) -> str:
    """One of them about the fields, as somebody may type it. `many`: the first thing takes "are". `exact`:
    words are spelt as they are.
    """
    template = rng.choice(templates)
    if "<" in template:
        for mark, verb in SEVERAL if many else ONE:
            template = template.replace(mark, verb)
    question = tidy(chosen(rng, template.format_map(fields or {})))
    question = introduced(rng, punctuated(rng, question) if exact else casual(rng, question))
    return question.lower() if not exact and rng.random() < SMALL else question
