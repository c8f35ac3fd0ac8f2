"""The tokenizer against the configuration: control ids, round trips of text, and what the templates spell."""

import json
from dataclasses import fields

from kestrel_core.intake.tokenizer import Tokenizer
from kestrel_core.moondream.config import MoondreamConfig, Template
from kestrel_tools.doctor.report import Finding, fault, first_names, ok, warning

TAKE_STARMIE = (
    "Take the tokenizer.json of this release; releases since 2025-06-21 speak that of moondream/starmie-v1."
)
TAKE_CONFIG = "Take the config.json of this release: its templates are mixed up."
TEXTS = (
    "How many people are there?",
    "  Two  spaces,\ttabs\nand lines ",
    "Größe, façade, naïve",
    "Сколько людей?",
    "图片里有什么",
    "日本語とカタカナ",
    "كم عدد الأشخاص؟",
    "हिन्दी में लिखो",
    "👩‍👩‍👧 🏳️‍🌈 🦅",
    "x ≤ 3·10⁻², 50 %",
)
# Legacy releases have these two alone; the other ids are words there.
LEGACY_IDS = ("bos_id", "eos_id")
# Users who write these mean the letters. Written as special tokens they would steer the model.
SPELLINGS = ("<|endoftext|>", "<|md_reserved_0|>", "a<|md_reserved_2|>b", "<|md_reserved_4|>")
# What each template has to spell, in the current releases or the legacy ones.
SKILL_WORDS = {
    "query": ("query", "question"),
    "caption": ("describe", "caption"),
    "detect": ("detect",),
    "point": ("point",),
    "segment": ("segment",),
}


def check_controls(document: str, config: MoondreamConfig) -> Finding:
    """Each control id within the vocabulary and marked special in tokenizer.json, so that it is silent."""
    ids = {
        field.name.removesuffix("_id"): getattr(config.tokenizer, field.name)
        for field in fields(config.tokenizer)
        if field.name.endswith("_id") and (config.dialog.masks_controls or field.name in LEGACY_IDS)
    }
    outside = [f"{name} {i}" for name, i in ids.items() if not 0 <= i < config.text.vocab_size]
    if outside:
        return fault(
            f"outside the vocabulary of {config.text.vocab_size:,}: {', '.join(outside)}", TAKE_STARMIE
        )
    special = {
        token["id"]: token["content"] for token in json.loads(document)["added_tokens"] if token["special"]
    }
    if plain := [f"{name} {i}" for name, i in ids.items() if i not in special]:
        judge = warning if config.tokenizer.eos_id in special else fault
        return judge(f"not special in tokenizer.json: {', '.join(plain)}", TAKE_STARMIE)
    return ok(", ".join(f"{name} {i} {special[i]}" for name, i in ids.items()))


def check_round_trips(tokenizer: Tokenizer) -> Finding:
    lost, lowered = [], 0
    for text in TEXTS:
        back = tokenizer.decode(tokenizer.encode(text))
        if back == text:
            continue
        if back == text.lower():
            lowered += 1
        else:
            lost.append(f"{text!r} comes back as {back!r}")
    if lost:
        return fault(f"text is lost: {first_names(lost)}", TAKE_STARMIE)
    how = ", capitals as small letters (its own habit)" if lowered else ""
    return ok(f"{len(TEXTS)} texts in six scripts and emoji come back whole{how}")


def check_spellings(tokenizer: Tokenizer, config: MoondreamConfig) -> Finding:
    controls = config.tokenizer.control_ids
    wrong = []
    for text in SPELLINGS:
        ids = tokenizer.encode(text)
        if not controls.isdisjoint(ids) or tokenizer.decode(ids).lower() != text.lower():
            wrong.append(f"{text} becomes {ids}")
    if wrong:
        return fault(f"a user's words become control tokens: {'; '.join(wrong)}", TAKE_STARMIE)
    return ok("spellings of special tokens in a question stay plain text")


def spelled(tokenizer: Tokenizer, ids: tuple[int, ...]) -> str:
    """The words, with a bar for each control token that is silent."""
    return "".join(tokenizer.decode([i]) or "|" for i in ids)


def check_templates(tokenizer: Tokenizer, config: MoondreamConfig, is_known: bool) -> Finding:
    """`is_known`: a published model's, whose words are known; those of others may be anything."""
    templates = config.tokenizer.templates
    skills: dict[str, Template] = {
        name: getattr(templates, name)
        for name in ("query", "detect", "point", "segment")
        if getattr(templates, name) is not None
    }
    shown = {name: spelled(tokenizer, template.prefix + template.suffix) for name, template in skills.items()}
    shown |= {
        f"caption {length}": spelled(tokenizer, getattr(templates.caption, length))
        for length in ("short", "normal", "long")
    }
    found = ", ".join(f"{name}: {text!r}" for name, text in shown.items())
    swapped = [name for name, text in shown.items() if _spells_another(name, text)]
    if swapped:
        return fault(f"{', '.join(swapped)} spelled as something else ({found})", TAKE_CONFIG)
    if silent := [name for name, text in shown.items() if not _spells(name, text)]:
        judge = fault if is_known else warning
        return judge(f"{', '.join(silent)} not spelled by the templates ({found})", TAKE_STARMIE)
    return ok(found)


def _spells(name: str, text: str) -> bool:
    skill, _, length = name.partition(" ")
    lengths = [other for other in ("short", "normal", "long") if other in text.lower()]
    # The legacy template of a normal caption says no length.
    right_length = not length or lengths == [length] or (length == "normal" and not lengths)
    return right_length and any(word in text.lower() for word in SKILL_WORDS[skill])


def _spells_another(name: str, text: str) -> bool:
    if _spells(name, text):
        return False
    skill = name.partition(" ")[0]
    others = [word for other, words in SKILL_WORDS.items() if other != skill for word in words]
    lengths = [word for word in ("short", "long") if skill == "caption" and word in text.lower()]
    return bool(lengths) or any(word in text.lower() for word in others)
