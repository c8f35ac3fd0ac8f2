"""How people ask about the looks of print: its colours, size, tilt and place. The answers are in `looks`."""

from kestrel_tools.things.language.questions import COLOUR, PICTURE

from .more_words import WRITING

QUESTIONS: dict[str, tuple[str, ...]] = {
    "sign colour": (
        f"[What|Which] {COLOUR} is the [sign|panel|box|board|label|sticker]?",
        f"[What's|What is] the {COLOUR} of the [sign|panel|box|board|label]?",
        f"[What|Which] {COLOUR} is the [sign|box|rectangle|panel] [behind|with|around] the {WRITING}?",
        f"[What|Which] {COLOUR} does the [sign|label|board] have?",
        f"The [sign|label|board] itself, not the letters: [what|which] {COLOUR} is it?",
    ),
    # {0} the text, the word such and such.
    "behind text": (
        f"[What|Which] {COLOUR} is behind {{0}}?",
        f"On [what|which] {COLOUR} is {{0}} [printed|written]?",
        f"[What's|What is] the {COLOUR} behind {{0}}?",
        f"[What|Which] {COLOUR} is the background [behind|of] {{0}}?",
        f"[What|Which] {COLOUR} is {{0}} [printed|written] on?",
    ),
    # {0} is first, bottom.
    "line colour": (
        f"[What|Which] {COLOUR} is the {{0}} [line|text]?",
        f"[What's|What is] the {COLOUR} of the {{0}} [line|text]?",
        f"In [what|which] {COLOUR} is the {{0}} [line|text] [printed|written]?",
        f"[What|Which] {COLOUR} did they [use|take] for the {{0}} line?",
    ),
    # {0} is both or all.
    "one colour": (
        f"Are {{0}} [the|] [lines|texts] [the same {COLOUR}|in the same {COLOUR}|printed in one {COLOUR}]?",
        f"Is all [the text|of the print|the writing] [in one {COLOUR}|in the same {COLOUR}|of one {COLOUR}]?",
        f"Do {{0}} [the|] [lines|texts] have the same {COLOUR}?",
    ),
    "text colours": (
        f"[What|Which] {COLOUR}s [are the texts|do the texts have|are the lines printed in]?",
        f"[What|Which] {COLOUR}s [are used for the print|does the print have]?",
        f"Name the {COLOUR}s of the [lines|texts] [from top to bottom|].",
    ),
    # {0} and {1} are lines.
    "larger text": (
        "Which is [printed|written|] [bigger|larger|in bigger letters], {0} or {1}?",
        "Which [text|line] has the [bigger|larger] letters, {0} or {1}?",
        "Of {0} and {1}, [which|which one] is [bigger|larger|printed bigger]?",
    ),
    "is larger": (
        "Is {0} [printed|written|] [bigger|larger] than {1}?",
        "Does {0} have [bigger|larger] letters than {1}?",
        "Are the letters of {0} [bigger|larger] than [those of|the ones in] {1}?",
    ),
    "upper text": (
        "Which is [higher up|further up|above the other|higher], {0} or {1}?",
        "[Which|What] comes first from the top, {0} or {1}?",
        "[Which|What] is on top, {0} or {1}?",
        "Of {0} and {1}, which [one|] is [above|higher up]?",
    ),
    "lower text": (
        "Which is [lower|further down|below the other|lower down], {0} or {1}?",
        "Of {0} and {1}, which [one|] is [below|further down]?",
    ),
    "is above": (
        "Is {0} [above|over|higher up than|on top of] {1}?",
        "[Is|Was] {0} [written|printed] [above|over] {1}?",
        "Does {0} [stand|come] above {1}?",
    ),
    "is below": (
        "Is {0} [below|under|underneath|beneath|further down than] {1}?",
        "[Is|Was] {0} [written|printed] [below|under|beneath] {1}?",
        "Does {0} [stand|come] below {1}?",
    ),
    "capital line": (
        "[What|Which] [line|text] is [in|printed in|written in] [capitals|capital letters|all caps]?",
        "What is [written|printed] in [capitals|capital letters|all caps|upper case]?",
        "Read [only|] what is [in all caps|in capital letters|in capitals].",
    ),
    "small line": (
        "[What|Which] [line|text] is [in|printed in|written in] [lower case|lowercase letters]?",
        "What is [written|printed] [all|] in [lower case|lowercase|lowercase letters]?",
        "[What|Which] [line|text] has no [capitals|capital letters]?",
    ),
    "is tilted": (
        f"Is the {WRITING} [tilted|crooked|at an angle|rotated a bit|askew|turned a little]?",
        f"Does the {WRITING} [run|go] [askew|uphill or downhill]?",
        f"Was the {WRITING} [printed|put there|written] at an angle?",
    ),
    "is level": (
        f"Is the {WRITING} [straight|level|horizontal|perfectly level]?",
        f"Does the {WRITING} run straight [across|]?",
        "[Straight|Level|Horizontal] [text|print], yes or no?",
    ),
    # {0} and {1} are top and bottom, or left and right.
    "which half": (
        f"Is the {WRITING} [at|in|more at] the {{0}} or the {{1}} [of the {PICTURE}|]?",
        f"Is the {WRITING} in the {{0}} [half|part] or the {{1}} [half|part]?",
        f"Where is the {WRITING}, {{0}} or {{1}}?",
        f"In which half [is|do you find] the {WRITING}, {{0}} or {{1}}?",
    ),
    "is in half": (
        f"Is the {WRITING} in the {{0}} half [of the {PICTURE}|]?",
        f"Is the {WRITING} [printed|written] in the {{0}} half?",
        f"Did they [put|print] the {WRITING} in the {{0}} half?",
    ),
    # {0} is the word such and such.
    "where text": (
        "Where is {0}?",
        "Where is {0} [written|printed]?",
        f"[Where in|In which part of] the {PICTURE} is {{0}}?",
        "Where [do I find|can I see|should I look for] {0}?",
    ),
    # {0} a thing.
    "is text above": (
        f"Is the {WRITING} [above|over] {{0}}?",
        "Is [something|the text|anything] [written|printed] [above|over] {0}?",
    ),
    "is text below": (
        f"Is the {WRITING} [below|under|beneath|underneath] {{0}}?",
        "Is [something|the text|anything] [written|printed] [below|under|beneath] {0}?",
    ),
    "is text left of": (f"Is the {WRITING} [left of|to the left of|on the left of] {{0}}?",),
    "is text right of": (f"Is the {WRITING} [right of|to the right of|on the right of] {{0}}?",),
    "what else": (
        f"What [else|] [is there|do you see] [besides|apart from|other than] the {WRITING}?",
        f"[Besides|Apart from] the {WRITING}, what [is there|do you see|is in the {PICTURE}]?",
        f"What is [drawn|pictured] [besides|in addition to] the {WRITING}?",
        f"Leave out the {WRITING}[.|:] What [is left|else is there|remains]?",
        f"What else is [in|on] the {PICTURE}, not counting the {WRITING}?",
    ),
    "anything else": (
        f"Is there anything [else|] [besides|apart from|other than] the {WRITING}?",
        f"Is [something|anything] [drawn|shown|there] besides the {WRITING}?",
        f"[Do|Can] you see anything [besides|apart from|other than] the {WRITING}?",
    ),
}  # fmt: skip
