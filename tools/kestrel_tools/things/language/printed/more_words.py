"""How people ask about letters, words and figures, and what words mean. The answers are in `more`."""

from kestrel_tools.things.language.questions import CARRIER, PICTURE

WRITING = "[text|writing|print|lettering]"
QUESTIONS: dict[str, tuple[str, ...]] = {
    "first letter": (
        "[What's|What is|Which is] the [first|very first|initial] letter?",
        "[What|Which] letter [comes first|is at the beginning|is at the start|stands first]?",
        "[With|On] [which|what] letter does the [word|text] [start|begin]?",
        "[What|Which] letter does it [start|begin] with?",
        "[Tell me|Give me|Name] the first letter.",
        "My kid is learning to read. [What's|What is] the first letter?",
    ),
    "last letter": (
        "[What's|What is|Which is] the [last|final|very last] letter?",
        "[What|Which] letter [comes last|is at the end|stands last|is the final one]?",
        "[With|On] [which|what] letter does the [word|text] end?",
        "[What|Which] letter does it end [with|in|on]?",
        "[Tell me|Give me|Name] the last letter.",
    ),
    "nth letter": (
        "[What's|What is|Which is] the {1} letter?",
        "[What|Which] letter is the {1} one?",
        "[What|Which] letter [comes|stands] {1}?",
        "[Tell me|Give me|Name] the {1} letter.",
    ),
    "number of letters": (
        "How many letters [are there|are written|does it have|do you count]?",
        "How many letters [has the word|does the word have|has it got]?",
        "[Count|Please count] the letters.",
        "How many letters long is [it|the word]?",
        "[What's|What is] the number of letters?",
        "[For|In] my crossword: how many letters [is it|does it take]?",
    ),
    "number of digits": (
        "How many digits [are there|does it have|does the number have|do you count]?",
        "[Count|Please count] the digits.",
        "How many digits long is the number?",
    ),
    "first digit": (
        "[What's|What is] the first digit?",
        "With [which|what] digit does the number [start|begin]?",
        "[Which|What] digit [comes|stands] first?",
    ),
    "last digit": (
        "[What's|What is] the last digit?",
        "[Which|What] digit does the number end [with|in]?",
        "[Which|What] digit [comes|stands] last?",
    ),
    "spell": (
        "[Spell|Please spell|Can you spell] [it|the word] [for me|out loud|].",
        "[Spell|Please spell|Can you spell] [it|the word|the text] letter by letter.",
        "[Spell|Please spell] out the word.",
        "How [do you spell [it|the word]|is [it|the word] spelled]?",
        "[Letter by letter|One letter at a time|Slowly, letter by letter]: what does it say?",
        "I have to type the word. Which letters, one by one?",
        "Could you spell that?",
    ),
    # {1} is a letter.
    "count of letter": (
        "How many times [does the letter {1} appear|do you see the letter {1}]?",
        "How often [does the letter {1} occur|is the letter {1} used]?",
        "[Count|Please count] the letter {1}.",
        "How many letters {1} are [there|in it|in the word]?",
    ),
    "has letter": (
        "Is there the letter {1} [in it|in the word|in the text]?",
        "Does the [word|text] [have|contain] the letter {1}?",
        "[Do|Can] you see the letter {1}?",
        "Is the letter {1} used?",
        "Is {1} one of the letters?",
    ),
    "starts with": (
        "Does [it|the word|the text] [start|begin] with [the letter|] {1}?",
        "Is {1} the first letter?",
        "Is the first letter {1}?",
    ),
    "ends with": (
        "Does [it|the word|the text] end [with|in] [the letter|] {1}?",
        "Is {1} the last letter?",
    ),
    "first word": (
        "[What's|What is|Which is] the [first|very first] word [here|in the picture|]?",
        "[What|Which] word [comes first|is first|stands first|is at the beginning]?",
        "With [which|what] word does [it|the text] [start|begin]?",
        "[Read|Tell me|Just read] [only|] the first word.",
        "What's the word at the [start|beginning]?",
    ),
    "last word": (
        "[What's|What is|Which is] the [last|final|very last] word [here|in the picture|]?",
        "[What|Which] word [comes last|is last|stands last|is at the end]?",
        "With [which|what] word does [it|the text] end?",
        "[Read|Tell me|Just read] [only|] the last word.",
        "What's the word at the end?",
    ),
    "second word": (
        "[What's|What is|Which is] the second word?",
        "[What|Which] word [comes second|is second|follows the first one]?",
        "[Read|Tell me] [only|] the second word.",
    ),
    "longest word": (
        "[What's|What is|Which is] the longest word [here|in the text|]?",
        "[Which|What] word is the longest?",
        "Which word has the most letters?",
    ),
    "shortest word": (
        "[What's|What is|Which is] the shortest word [here|in the text|]?",
        "[Which|What] word is the shortest?",
        "Which word has the fewest letters?",
    ),
    "number of words": (
        "Of how many words does [it|the text] consist?",
        "How many words is [it|that|the text]?",
        f"How many words [stand|are] on [the|this] {CARRIER}?",
        "Is it one word or more? How many words?",
        "[Word count|Words in total|Number of words], please[.|?|]",
    ),
    # {1} is a word of it.
    "word after": (
        "[What|Which] word [comes after|follows|is right after|stands behind] {1}?",
        "[What|Which] comes after [the word|] {1}?",
        "After {1}, [what|which] word [comes|do you read|is next]?",
    ),
    "word before": (
        "[What|Which] word [comes before|is right before|stands before] {1}?",
        "[What|Which] word do you read before {1}?",
    ),
    "in capitals": (
        f"Is [it|the {WRITING}] [written|printed|] in [capitals|capital letters|all caps|upper case]?",
        "Are [the letters|all the letters|they|all letters] [capitals|capital letters|uppercase|upper case]?",
        "Is it all [caps|capitals|uppercase]?",
        "Did they write it all in [capitals|caps|upper case]?",
        "[Is|Was] everything [written|printed] in [capitals|capital letters|uppercase letters]?",
        "[Only|Just] capital letters, yes or no?",
        "Does [it|the text] have no small letters?",
        "Are they shouting, I mean, is it in all caps?",
    ),
    "in small letters": (
        f"Is [it|the {WRITING}] [written|printed|] in [small letters|lower case|lowercase letters]?",
        "Are all the letters [small|lower case|lowercase] ones?",
        "Is it all lowercase?",
    ),
    "capitals or": (
        "Is it [written|printed] in capital letters or small letters?",
        "[Small letters or capital letters|Capital letters or small letters]?",
        "Are the letters small letters or capital letters?",
    ),
    "is number": (
        "Is there a [number|digit|figure] [here|in the picture|in it|anywhere|somewhere|]?",
        "[Do|Can] you see [a number|any numbers|any digits] [here|anywhere|]?",
        f"Are there [any|] [numbers|digits|figures] on [the|this] {CARRIER}?",
        f"Does [the|this] {PICTURE} [have|contain|show] [a number|any numbers|any digits]?",
        "Is [anything|something] written in [digits|numbers|figures]?",
        "Any numbers [on it|there|]?",
    ),
    "word or number": (
        "Is [it|this|that|what is written here] a word or a number?",
        "[A word or a number|Word or number|Number or word]?",
        "What is [written|printed] [here|there], a [number or a word|word or a number]?",
        "Did they [write|print] a word or a number?",
    ),
    "plus": (
        "[What's|What is] the number plus {1}?",
        "[What|How much] is the [number|printed number|number shown] plus {1}?",
        "If I add {1} to the number, what do I get?",
        "[Add|Please add] {1} to the number [you see|shown|in the picture|on it].",
        "Take the number and add {1}[.|:] [what's the result|what is it|what do you get]?",
    ),
    "next number": (
        "[What|Which] number comes [next|after it|right after this one|after the one shown]?",
        "Counting up, [what|which] number comes after the [printed|shown|] one here?",
        "[What|Which] number would be next?",
    ),
    "number before": (
        "[What|Which] number comes [right|just|] before [it|the one shown|this one]?",
        "Counting up, [what|which] number comes just before the one here?",
        "[What's|What is] the number minus [one|1]?",
        "If I take [1|one] away from the number, what do I get?",
    ),
    "double": (
        "[What's|What is] [twice|double|two times] the number?",
        "If I double the number, what do I get?",
        "[Double|Multiply by two] the number [shown|you see|] [for me|].",
    ),
    "even or odd": (
        "Is the number [shown|here|] even or odd?",
        "[Even or odd|An even or an odd number|Odd or even]?",
        "Is it an odd or an even number?",
    ),
    # {1} is a number.
    "larger than": (
        "Is the number [larger|bigger|higher|greater|more] than {1}?",
        "Is it [more|bigger|higher] than {1}?",
        "Is the number [shown|printed|] above {1}?",
    ),
    "smaller than": (
        "Is the number [smaller|lower|less] than {1}?",
        "Is it [less|smaller] than {1}?",
        "Is the number [shown|printed|] below {1}?",
    ),
    "larger number": (
        "[What's|What is|Which is] the [larger|bigger|higher] number?",
        "Which [of the two numbers|of the numbers|number] is [larger|bigger|higher]?",
        "Two numbers are there[.|,|:] [which|which one] is the [bigger|larger] one?",
    ),
    "smaller number": (
        "[What's|What is|Which is] the [smaller|lower] number?",
        "Which [of the two numbers|of the numbers|number] is [smaller|lower]?",
        "Two numbers are there[.|,|:] [which|which one] is the smaller one?",
    ),
    "sum": (
        "[What's|What is] the sum of the [two|] numbers?",
        "[Add|Sum up|Please add] the [two|] numbers.",
        "What do the two numbers [add up to|make together|give together]?",
        "How much are the two numbers together?",
    ),
    # {1} is a word.
    "mentions": (
        "Does it say {1} [anywhere|somewhere|in there|at all]?",
        "Does the word {1} [appear|occur|show up] [anywhere|somewhere|in it|]?",
        "Is {1} [mentioned|named|written|printed] [anywhere|somewhere|in the text|]?",
        f"Is there anything about {{1}} on [the|this] {CARRIER}?",
        "[Search|Look|Check] for the word {1}[.|:|,] Is it there?",
        "Can {1} be read [anywhere|somewhere|]?",
        "Does the text [contain|include|mention|have] [the word|] {1}?",
        f"I am looking for [the|a] {CARRIER} that says {{1}}[.|,] Is this it?",
        "Did you find the word {1} [in it|]?",
    ),
    # {1} has figures.
    "mentions figure": (
        "Does it say {1} [anywhere|somewhere|in there|at all]?",
        "Is {1} [written|printed] [anywhere|somewhere|in the text|]?",
        "[Search|Look|Check] for {1}[.|:|,] Is it there?",
        "Can {1} be read [anywhere|somewhere|]?",
        "Does the text [contain|include|have] {1}?",
        "Did you find {1} [in it|]?",
    ),
    "heading": (
        "[What's|What is] the [heading|headline|title|header]?",
        "What does the [heading|headline|title|header] say?",
        "What is written in the [biggest|largest] letters?",
        "[What|Which] [line|text] is [printed|written|set] [biggest|largest]?",
        "[Read|Tell me] the [headline|heading|line in the biggest letters].",
        "What do the [biggest|largest] letters say?",
    ),
    "small print": (
        "What does the small print say?",
        "What is written in the smallest letters?",
        "[What|Which] [line|text] is [printed|written|set] smallest?",
        "[Read|Tell me] the [small print|line in the smallest letters|smallest text].",
    ),
    "name on it": (
        "[What's|What is] the name on the [sign|label|board|door]?",
        "[What's|What is] the [caption|inscription|label|slogan] [here|]?",
        "What does the [caption|label|inscription|banner|plate|sticker] say?",
        "What did [they|somebody|he|she] [write|print|put] on it?",
        "What do I have to type to [copy|quote] the text?",
        "What am I [supposed|meant] to read here?",
        f"What are the words on [the|this] {CARRIER}?",
        "Please [act as OCR|be my eyes]: what [text|word] is there?",
        "[Extract|Give me|Return] the text [only|as plain text|from this image|].",
        "what stands written there",
    ),
    # {1} is a line.
    "line after": (
        "[What's|What is] [written|printed] [under|below|beneath|underneath] {1}?",
        "[What|Which] [line|text] [comes after|follows|is below|is under] {1}?",
        "What does the line [below|under|after] {1} say?",
    ),
    "line before": (
        "[What's|What is] [written|printed] above {1}?",
        "[What|Which] [line|text] [comes before|is above] {1}?",
        "What does the line [above|before] {1} say?",
    ),
    # {0} a thing, {1} where: under, above.
    "text by thing": (
        "[What's|What is] [written|printed] {1} {0}?",
        "What does it say {1} {0}?",
        f"What does the {WRITING} {{1}} {{0}} say?",
        "[What|Which] [text|writing] [is|do you see|stands|can be read] {1} {0}?",
        "Read what [is written|it says] {1} {0}.",
        "There is something written {1} {0}[.|,|:] What?",
    ),
    "text beside thing": (
        "[What's|What is] [written|printed] [next to|beside|near|by|close to] {0}?",
        "What does it say [next to|beside|near|by] {0}?",
        f"What does the {WRITING} [next to|beside|near] {{0}} say?",
        "[What|Which] [text|writing] is [next to|beside|near|closest to] {0}?",
        "What [label|caption] does {0} have?",
    ),
    # {0} the word, {1} where.
    "thing by text": (
        "[What's|What is] {1} {0}?",
        "[What|Which] [thing|object|picture] is {1} {0}?",
        "What [do you see|can you see|is drawn|is there] {1} {0}?",
        "Name the [thing|object] {1} {0}.",
    ),
    "thing beside text": (
        "[What|Which] [thing|object|picture] is [beside|next to|nearest to|closest to|by|near] {0}?",
        "What [is drawn|do you see|is] [next to|beside|near|right by] {0}?",
        "{0} is written there. What is [drawn|] [next to|beside] it?",
        "[What|Which thing] stands [beside|next to] {0}?",
    ),
    "text above or": (
        "Is {1} above or below {0}?",
        "Where is {1}, above or below {0}?",
        "Is {1} [placed|printed|written] above or below {0}?",
        "Do you see {1} above or below {0}?",
    ),
    "text left or": (
        "Is {1} [to the left or to the right|on the left or on the right|left or right] of {0}?",
        "On which side of {0} is {1}, left or right?",
        "Do you see {1} left or right of {0}?",
    ),
}  # fmt: skip

# Of which line it is asked, where there are several; {0} stands before these questions.
ONE_LINE = "[Look at the {0} line:|Take the {0} line.|The {0} line:|Only the {0} line:]"
OF_LETTERS = (
    "first letter", "last letter", "nth letter", "number of letters", "number of digits", "first digit",
    "last digit", "spell", "has letter", "count of letter", "starts with", "ends with",
)  # fmt: skip
QUESTIONS |= {kind: tuple(f"{{0}} {words}" for words in QUESTIONS[kind]) for kind in OF_LETTERS}
# The same in one sentence, where there are several; {0} is the line, {1} as above.
QUESTIONS |= {
    "first letter of line": (
        "[What's|What is|Which is] the first letter [of|in] the {0} line?",
        "[What|Which] letter does the {0} line [start|begin] with?",
    ),
    "last letter of line": (
        "[What's|What is|Which is] the last letter [of|in] the {0} line?",
        "[What|Which] letter does the {0} line end with?",
    ),
    "number of letters of line": (
        "How many letters [are in the {0} line|does the {0} line have]?",
        "[Count|Please count] the letters [of|in] the {0} line.",
    ),
    "spell of line": (
        "[Spell|Please spell|Can you spell] the [word in the|word of the] {0} line?",
        "[Spell|Please spell] the {0} line letter by letter.",
        "How do you spell the word in the {0} line?",
    ),
    "has letter of line": ("Is there the letter {1} in the {0} line?", "Is {1} in the {0} line?"),
    "starts with of line": ("Does the {0} line [start|begin] with [the letter|] {1}?",),
    "ends with of line": ("Does the {0} line end with [the letter|] {1}?",),
}
