"""Makes the tokenizer from the sentences of the world: `python -m examples.train_tiny.make_tokenizer`.

Needs the `tokenizers` library. Run it again only before a new training: the ids are the model's.
"""

import json

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from .things_corpus import SKILLS, VOCABULARY, corpus
from .words import PIECES, TOKENIZER

CONTROLS = ["<|endoftext|>", *(f"<|md_reserved_{i}|>" for i in range(9))]


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
    return json.dumps(document, ensure_ascii=False, indent=0) + "\n"


if __name__ == "__main__":
    TOKENIZER.write_text(build(corpus()), encoding="utf-8")
