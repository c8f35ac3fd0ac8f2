"""Tokenizers against what a configuration expects of them."""

import json
from dataclasses import replace

from kestrel_core.intake.tokenizer import Tokenizer, byte_document
from kestrel_core.moondream.config import (
    LEGACY_TOKENIZER,
    MOONDREAM05,
    MOONDREAM2,
    MOONDREAM_TINY,
    Template,
)
from kestrel_tools.doctor.report import Verdict
from kestrel_tools.doctor.words import check_controls, check_round_trips, check_spellings, check_templates


class Spelling:
    """A tokenizer of a few words."""

    def __init__(self, words: dict[int, str]) -> None:
        self.words = words

    def decode(self, ids: list[int]) -> str:
        return "".join(self.words.get(i, "") for i in ids)

    def encode(self, text: str) -> list[int]:
        return [0]


def test_the_templates_of_current_and_legacy_releases_spell_their_skills() -> None:
    starmie = {32708: "describe", 12492: "short", 6382: "normal", 4059: "long"}
    starmie |= {15381: "query", 7235: "detect", 476: " all", 2581: "point"}
    current = check_templates(Spelling(starmie), MOONDREAM2, is_known=True)  # type: ignore[arg-type]
    assert current.verdict is Verdict.OK and "detect: '|detect all||'" in current.found
    gpt2 = {198: "\n", 25: ":", 628: "\n\n", 16438: "Short", 8305: " caption", 14617: "Long"}
    gpt2 |= {24334: "Capt", 1159: "ion", 24361: "Question", 33706: "Answer", 47504: "Detect", 12727: "Point"}
    legacy = replace(MOONDREAM2, tokenizer=LEGACY_TOKENIZER)
    assert check_templates(Spelling(gpt2), legacy, is_known=True).verdict is Verdict.OK  # type: ignore[arg-type]
    # The tokenizer of one beside the weights of the other.
    assert check_templates(Spelling(gpt2), MOONDREAM2, is_known=True).verdict is Verdict.FAULT  # type: ignore[arg-type]
    assert check_templates(Spelling({}), MOONDREAM2, is_known=False).verdict is Verdict.WARNING  # type: ignore[arg-type]
    templates = replace(MOONDREAM2.tokenizer.templates, query=Template((1, 2581, 2), (3,)))
    swapped = replace(MOONDREAM2, tokenizer=replace(MOONDREAM2.tokenizer, templates=templates))
    assert check_templates(Spelling(starmie), swapped, is_known=False).verdict is Verdict.FAULT  # type: ignore[arg-type]


def test_a_tokenizer_that_obeys_its_users_is_a_fault() -> None:
    assert check_spellings(Spelling({}), MOONDREAM2).verdict is Verdict.FAULT  # type: ignore[arg-type]
    assert check_spellings(Tokenizer.of_bytes(MOONDREAM2), MOONDREAM2).verdict is Verdict.OK


def test_a_control_token_that_is_a_plain_word_is_told() -> None:
    document = json.loads(byte_document(MOONDREAM_TINY))
    assert check_controls(json.dumps(document), MOONDREAM_TINY).verdict is Verdict.OK
    document["added_tokens"] = [token for token in document["added_tokens"] if token["id"] != 5]
    finding = check_controls(json.dumps(document), MOONDREAM_TINY)
    assert finding.verdict is Verdict.WARNING and "coord 5" in finding.found
    document["added_tokens"] = [token for token in document["added_tokens"] if token["id"] != 0]
    assert check_controls(json.dumps(document), MOONDREAM_TINY).verdict is Verdict.FAULT


def test_a_legacy_release_has_two_control_tokens_and_no_others() -> None:
    document = json.dumps({"added_tokens": [{"id": 50256, "content": "<|endoftext|>", "special": True}]})
    assert check_controls(document, MOONDREAM05).verdict is Verdict.OK


def test_text_that_does_not_come_back_is_a_fault() -> None:
    assert check_round_trips(Spelling({})).verdict is Verdict.FAULT  # type: ignore[arg-type]
    assert check_round_trips(Tokenizer.of_bytes(MOONDREAM2)).verdict is Verdict.OK
