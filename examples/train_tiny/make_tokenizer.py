"""Makes a tokenizer from the sentences of a world: `python -m examples.train_tiny.make_tokenizer WORLD`.

WORLD is `shapes` (the bundled model's) or `things`. Needs the `tokenizers` library. Run it again only before
a new training: the ids are the model's.
"""

import json
import sys

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from kestrel_tools.scenes import phrases, world

from . import things_corpus
from .words import PIECES, THINGS_TOKENIZER, TOKENIZER

VOCABULARY = 768
CONTROLS = ["<|endoftext|>", *(f"<|md_reserved_{i}|>" for i in range(9))]
SKILLS = ("describe", "query", "detect", "point", "segment", "short", "normal", "long")  # ids 10 to 17

SAID = """I see no shapes.
I look at the whole picture.
I look at the red circle and the
, 3 in all.
From left to right: a
There are 3 shapes. There is no
The text says nothing.
An empty picture.
Only the text
Please tell me: Answer with one word. Answer in a full sentence. Use a
There is no picture to look at.
Is the to the left of over under above below right of not
It is the This is a
all objects thing"""


def corpus() -> list[str]:
    subjects = [
        f"{size} {colour} {noun}" for size in world.SIZES for colour in world.COLOURS for noun in nouns()
    ]
    asked = [
        form.format(subject)
        for forms in phrases.QUESTIONS.values()
        for form in forms
        for subject in subjects[::37]
    ]
    talk = [text for questions, answer in phrases.SMALL_TALK for text in (*questions, answer)] * 40
    answers = [*world.COLOURS, *world.SHAPES, *world.SIZES, "yes", "no", "nothing", *SKILLS] * 400
    places = [
        f"at the {row} {column} center" for row in ("top", "bottom") for column in ("left", "right")
    ] * 100
    said = SAID.splitlines() * 200
    return [*subjects * 8, *asked, *talk, *answers, *places, *said, *phrases.OTHER_THINGS]


def nouns() -> list[str]:
    return [
        form for noun in (*world.SHAPES, "shape", "object", "thing") for form in (noun, phrases.plural(noun))
    ]


def build(sentences: list[str], vocabulary: int = VOCABULARY) -> str:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=CONTROLS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(sentences, trainer)
    document = json.loads(tokenizer.to_str())
    names = sorted(document["model"]["vocab"], key=document["model"]["vocab"].get)
    first = [*CONTROLS, *SKILLS]
    order = [*first, *(name for name in names if name not in first)]
    document["model"]["vocab"] = {name: index for index, name in enumerate(order)}
    return json.dumps(document, ensure_ascii=False, indent=0)


WORLDS = {
    "shapes": (TOKENIZER, corpus, VOCABULARY),
    "things": (THINGS_TOKENIZER, things_corpus.corpus, things_corpus.VOCABULARY),
}


def document_of(world: str) -> str:
    _, sentences, vocabulary = WORLDS[world]
    return build(sentences(), vocabulary) + "\n"


if __name__ == "__main__":
    for world in sys.argv[1:]:
        path = WORLDS[world][0]
        path.write_text(document_of(world), encoding="utf-8")
        print(f"{path}: {len(json.loads(path.read_text())['model']['vocab'])} tokens")
