"""How a question may be written: alternatives in brackets, and what people do to spelling and punctuation.

"[What's|What is] in the picture?" is one of two sentences; brackets may hold brackets, and an empty part.
"""

import re
from random import Random

INNERMOST = re.compile(r"\[([^\[\]]*)\]")

BRITISH = (("color", "colour"), ("gray", "grey"), ("center", "centre"), ("airplane", "aeroplane"))
LEADS = (
    "Please tell me: ", "Can you tell me: ", "Hey, ", "OK, ", "Excuse me, ", "Hi! ", "Quick question: ",
    "Could you tell me ", "I wonder, ", "So, ", "Now ", "Please, ", "Tell me, ", "And ", "Question: ",
)  # fmt: skip
TAILS = (", please", " please", ", thanks", " Thanks!", " pls", " thank you")
# What people say around a question: before any, before one that begins with these words, and after it.
OPENINGS = (
    "[Hi|Hello|Hey|Hi there][,|!] my [daughter|son|kid|little brother|niece] [drew|made|painted] this[.|,]",
    "[Hi|Hello|So], I [found|got|have] this [picture|image|photo] [online|here|from a friend][.|,]",
    "[Sorry to bother you|Sorry|Excuse me|Pardon me|Forgive me for asking], [but |]",
    "[I have a [quick|small|short|simple|silly] question|Quick question|One more question|One thing][:| -|,]",
    "[I|We] [just|only|] [want|wanted|would like] to [know|check|make sure][:|,| -]",
    "[I'm|I am] [just|] [testing|trying] [this|you|this thing|this demo][.|, so|:]",
    "[I can't see|I don't see|I can barely see] [it|this|much|the picture] [well|very well|clearly], [so|]",
    "[OK|Okay|Alright|Well|So|Right] [then|now|next one|]:",
    "[Look at|Have a look at|Take a look at|Check out] [this|this picture|this image|it][.|:|!]",
    "[My [teacher|friend|wife|boss|mom] [asks|wants to know]|We are wondering|Help me out][:|,]",
    "[Here is|Here's] a [picture|drawing|photo] [for you|of mine|]. [Now,|]",
    "[Based on|Looking at|From|Judging by] [the|this] [picture|image], ",
    "[For my homework|For a quiz|For a game|For work][:|,]",
    "[I'm|I am|We are] [late|busy|in a hurry|on the phone|about to leave|at the office][.|!|,| and| so]",
    "[My|Our|The] [guests|parents|kids|friends] [will be here|are waiting|arrive|want to go] [soon|now][.|!]",
    "[The [meeting|class|show|game|lesson] [begins|starts|ends] [soon|now|shortly|in five minutes]][.|!|,]",
    "[I [left|forgot|broke|sold] my [glasses|notes|phone]|It's [late|dark|early]|Nice [day|one]][.|!|, so]",
    "[Good [morning|evening|afternoon]|Greetings][!|,]",
)  # fmt: skip
ASKING = (
    "[Could|Can|Would|Will] you [please|kindly|maybe|] tell me[:|,|] ",
    "[Do you know|Can you see|Any idea|Can you say|I was wondering|I'd like to know|I wonder] ",
    "Would you mind telling me ",
    "[I need to know|Help me find out|Let me know] ",
    "[Hi|Hello|Hey|Good morning], [could|can] you tell me ",
    "Sorry to bother you, but could you tell me ",
    "[I was hoping|I hope] you [could|can] tell me ",
)  # fmt: skip
CLOSINGS = (
    "[I'm|I am] [just|] curious.", "Just [asking|checking].", "[Do you know|Can you tell|Any idea]?",
    "I [can't|cannot] [see it well|tell|make it out].", "My [son|daughter|friend] wants to know.",
    "[Be honest|Take your time|Look closely].",
    "[Thanks|Thank you] [in advance|so much|a lot][!|.|]",
)  # fmt: skip
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def chosen(rng: Random, template: str) -> str:
    """One of the sentences that the template stands for."""
    while (found := INNERMOST.search(template)) is not None:
        part = rng.choice(found[1].split("|"))
        template = template[: found.start()] + part + template[found.end() :]
    return re.sub(r" +", " ", template).strip()


def tidy(question: str) -> str:
    """Without the space that an empty part leaves before a mark, and with a capital."""
    question = question.replace(" ?", "?").replace(" .", ".").replace(" ,", ",")
    return question[:1].upper() + question[1:]


def number_of(template: str) -> int:
    """How many sentences a template stands for, the same ones counted twice."""
    count = 1
    while (found := INNERMOST.search(template)) is not None:
        count *= found[1].count("|") + 1
        template = template[: found.start()] + template[found.end() :]
    return count


def casual(rng: Random, question: str) -> str:
    """The question as somebody may type it."""
    if rng.random() < 0.3:
        for american, british in BRITISH:
            question = question.replace(american, british)
    if rng.random() < 0.06:
        question = rng.choice(LEADS) + question[0].lower() + question[1:]
    elif rng.random() < 0.05:
        bare, mark = question.rstrip("?.!"), question[-1:]
        question = bare + rng.choice(TAILS) + (mark if rng.random() < 0.6 else "")
    if rng.random() < 0.05:
        question = mistyped(rng, question)
    return punctuated(rng, question)


def introduced(rng: Random, question: str) -> str:
    """Now and then with the words that people put around a question."""
    if (chance := rng.random()) >= 0.04:
        return question
    begun = question[:1].lower() + question[1:]
    if chance < 0.017 and begun.startswith(("what", "which", "where", "how", "who")):
        return chosen(rng, rng.choice(ASKING)) + " " + begun
    if chance < 0.032:
        return f"{chosen(rng, rng.choice(OPENINGS))} {begun}"
    return f"{question} {chosen(rng, rng.choice(CLOSINGS))}"


def punctuated(rng: Random, question: str) -> str:
    chance = rng.random()
    if chance < 0.14:
        return question.rstrip("?.!")
    if chance < 0.16:
        return question + rng.choice(("?", "!", "??"))
    if chance < 0.175:
        return f"{question.rstrip('?.!')} {question[-1]}"
    if chance < 0.185:
        return question.replace("'", "")
    if chance < 0.195:
        return f" {question}" if rng.random() < 0.5 else question.replace(" ", "  ", 1)
    if chance < 0.21 and question.endswith("?"):
        return question[:-1] + "."
    return question


def mistyped(rng: Random, question: str) -> str:
    """One word of four letters or more with a slip of the finger."""
    words = list(re.finditer(r"[A-Za-z]{4,}", question))
    if not words:
        return question
    word = rng.choice(words)
    at = rng.randrange(word.start() + 1, word.end() - 1)
    before, letter, after = question[:at], question[at], question[at + 1 :]
    match rng.choice(("swap", "drop", "double", "other")):
        case "swap":
            return before + after[0] + letter + after[1:]
        case "drop":
            return before + after
        case "double":
            return before + 2 * letter + after
    return before + rng.choice(LETTERS) + after
