"""How the tables of further questions are written: a kind, and below it a wording on each line.

They are asked in training alone, so the score is the same whatever is added. A wording is a template as in
`language.questions`, with marks for what many wordings share: "<know> <whether> there is {} <here>". The
subjects may be said otherwise: {:bare} is "dog" where {} is "the dog", and {:a} is "a dog".
"""

import re

# Marks may hold marks.
MARKS = {
    "pic": "[picture|image|picture|image|pic|photo|drawing|illustration|scene|sketch]",
    "thepic": "[the|this|the|this|my|that] <pic>",
    "here": "[here|in here|in <thepic>|in <thepic>|on <thepic>|there|in it]",
    "kid": "[son|daughter|kid|boy|girl|niece|nephew|sister|brother|friend|wife|husband|grandson|neighbor]",
    "they": "[they|he|she|the artist|someone|my <kid>|the kids]",
    "please": "[please|please|pls|for me|]",
    "know": (
        "[I need to know|I'd like to know|I want to know|I have to know|I was wondering|I wonder|Tell me|"
        "Please tell me|Let me know|Can you tell me|Could you tell me|Could you please tell me|Can you see|"
        "Would you mind telling me|Do you know|I am curious|Find out|I would be glad to know|Say|"
        "Would you be so kind as to tell me|My <kid> wants to know|My <kid> asks]"
    ),
    "whether": "[whether|if|if]",
    "claim": (
        "[I think|I believe|I guess|I'd say|I would say|I am sure|It seems to me that|My <kid> says|"
        "My <kid> thinks|My <kid> claims|Someone told me that|I was told that|It looks like|I heard that|"
        "My <kid> insists that|They say|I bet|I suppose]"
    ),
    "then": "[.|.|,|:| -|...]",  # between what is said and what is asked
    "right": (
        "[Am I right|Is that right|Is that correct|Is that true|Correct|Right|True|Do you agree|Is that so|"
        "Can you confirm that|Yes or no]"
    ),
    "thing": "[thing|object|item]",
    "color": "color",  # made British now and then, as in `language.spelling`
    "end": "[.|?|]",
}
MARK = re.compile(f"<({'|'.join(MARKS)})>")


def wordings(table: str) -> dict[str, tuple[str, ...]]:
    """The wordings of each kind, without the marks that are the same for all subjects."""
    found: dict[str, tuple[str, ...]] = {}
    for paragraph in table.strip().split("\n\n"):
        kind, *lines = paragraph.splitlines()
        found[kind] = found.get(kind, ()) + tuple(_unmarked(line) for line in lines)
    return found


def _unmarked(line: str) -> str:
    while MARK.search(line):
        line = MARK.sub(lambda mark: MARKS[mark[1]], line)
    return line
