import json
from dataclasses import replace
from typing import Any

import pytest
from goldens import GOLDEN, golden_config
from hypothesis import given
from hypothesis import strategies as st

from kestrel_core.moondream.checkpoint.config_file import parse_config, validate
from kestrel_core.moondream.config import (
    LEGACY_DIALOG,
    LEGACY_TOKENIZER,
    MOONDREAM05,
    MOONDREAM2,
    MOONDREAM3,
    Captions,
    MoondreamConfig,
    Template,
)
from kestrel_core.protocol.errors import BadCheckpoint


def refused(document: object, default: MoondreamConfig | None = None) -> str:
    with pytest.raises(BadCheckpoint) as caught:
        parse_config(document, default)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("config", [MOONDREAM2, MOONDREAM05, MOONDREAM3], ids=["2", "0.5B", "3"])
def test_the_published_models_are_possible(config: MoondreamConfig) -> None:
    validate(config)
    assert config.image_prefix_length == 730


def test_the_published_files_leave_everything_to_the_defaults() -> None:
    assert parse_config({}) == MOONDREAM2
    assert parse_config({"model_type": "moondream1"}) == MOONDREAM2
    skills = {"skills": ["query", "caption", "detect", "point"]}
    wrapper = {"architectures": ["HfMoondream"], "torch_dtype": "bfloat16", "config": skills}
    assert parse_config({"model_type": "moondream3", **wrapper}) == MOONDREAM3


def test_the_generations_differ_as_the_description_says() -> None:
    text = MOONDREAM3.text
    assert (text.max_context, text.rotary_base, text.tau) == (4096, 1_500_000.0, True)
    assert (MOONDREAM2.text.max_context, MOONDREAM2.text.rotary_base, MOONDREAM2.text.tau) == (
        2048,
        1e4,
        False,
    )
    assert [text.has_experts(layer) for layer in (0, 3, 4, 23)] == [False, False, True, True]
    assert not any(MOONDREAM2.text.has_experts(layer) for layer in range(24))
    assert (text.head_dim, text.rotary_dim, text.qkv_dim) == (64, 32, 6144)
    defaults = [
        (c.dialog.temperature, c.dialog.top_p, c.dialog.max_objects) for c in (MOONDREAM2, MOONDREAM3)
    ]
    assert defaults == [(0.5, 0.3, 50), (0.5, 0.9, 150)]


def test_golden_files_override_the_defaults() -> None:
    two, three = golden_config("md2"), golden_config("md3")
    assert (two.generation, two.text.dim, two.text.vocab_size, two.region.inner_dim) == (2, 128, 640, 96)
    assert two.tokenizer.templates.detect.prefix == (1, 598, 495, 2)
    assert three.generation == 3 and three.text.moe is not None
    assert (three.text.moe.num_experts, three.text.moe.experts_per_token) == (16, 4)
    assert three.dialog == MOONDREAM3.dialog and three.text.rotary_base == 1_500_000.0


def test_the_sections_may_stand_at_the_top_too() -> None:
    document = json.loads((GOLDEN / "md3/config.json").read_text())
    assert parse_config(document["config"]) == parse_config(document) == golden_config("md3")


def test_a_file_that_does_not_name_its_generation_gets_the_default() -> None:
    assert parse_config({"text": {"n_layers": 5}}, MOONDREAM3).text == replace(MOONDREAM3.text, n_layers=5)
    assert parse_config({}, MOONDREAM05) == MOONDREAM05


def test_a_file_that_names_its_generation_is_believed() -> None:
    assert parse_config({"model_type": "moondream3"}, MOONDREAM2) == MOONDREAM3
    assert parse_config({"region": {"inner_dim": 8192}}, MOONDREAM3) == MOONDREAM2
    assert parse_config({"text": {"moe": {"num_experts": 32}}}).text.moe is not None


def test_without_experts_all_blocks_are_dense() -> None:
    config = parse_config({"model_type": "moondream3", "text": {"moe": None}})
    assert config.generation == 3 and not config.text.has_experts(23)


def test_keys_nobody_knows_are_ignored() -> None:
    document = {
        "transformers_version": "5",
        "text": {"prefix_attn": 730, "colour": "red"},
        "sound": {"dim": 1},
    }
    assert parse_config(document) == MOONDREAM2


def test_key_value_heads_are_as_many_as_heads_unless_said() -> None:
    assert parse_config({"text": {"n_heads": 16}}).text.n_kv_heads == 16
    assert parse_config({"text": {"n_heads": 16, "n_kv_heads": 4}}).text.n_kv_heads == 4


def test_a_checkpoint_may_say_how_it_wants_to_be_asked() -> None:
    config = parse_config({"dialog": {"temperature": 0, "question_lead": "Q: "}})
    assert config.dialog == replace(MOONDREAM2.dialog, temperature=0.0, question_lead="Q: ")
    with pytest.raises(BadCheckpoint, match=r"dialog\.question_lead is 3, which is not str"):
        parse_config({"dialog": {"question_lead": 3}})


def test_the_old_end_token_is_the_sign_of_an_old_release() -> None:
    old = {"tokenizer": {"bos_id": 50256, "eos_id": 50256}}
    config = parse_config(old)
    assert config.dialog == LEGACY_DIALOG and not config.dialog.reasons
    assert config.tokenizer == LEGACY_TOKENIZER
    assert parse_config({"tokenizer": {"eos_id": 50256}}).tokenizer == LEGACY_TOKENIZER


def test_an_old_release_has_the_old_words_for_whatever_it_leaves_out() -> None:
    given = {"caption": {"short": [198, 1], "normal": [198, 2]}, "query": {"prefix": [198, 3]}}
    ids = {"eos_id": 50256, "bos_id": 7, "templates": given}
    tokenizer, old = parse_config({"tokenizer": ids}).tokenizer, LEGACY_TOKENIZER.templates
    assert tokenizer.bos_id == 7
    assert tokenizer.templates == replace(
        old,
        caption=Captions((198, 1), (198, 2), old.caption.long),
        query=Template((198, 3), old.query.suffix),
    )


def test_an_old_default_keeps_words_of_its_own() -> None:
    own = replace(LEGACY_TOKENIZER, templates=replace(LEGACY_TOKENIZER.templates, point=Template((9,))))
    config = parse_config({"tokenizer": {"eos_id": 50256}}, replace(MOONDREAM05, tokenizer=own))
    assert config.tokenizer == own


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (None, "no JSON object"),
        ([], "no JSON object"),
        ({"config": 3}, '"config" is not an object'),
        ({"model_type": "llama"}, 'model_type "llama" is none of'),
        ({"model_type": ["moondream3"]}, "is none of"),
        ({"text": []}, "config.json: text is not an object"),
        ({"text": {"moe": 5}}, "text.moe is not an object"),
        ({"text": {"dim": "2048"}}, "text.dim is '2048', which is not int"),
        ({"text": {"dim": 2048.0}}, "text.dim is 2048.0"),
        ({"text": {"n_heads": True}}, "text.n_heads is True"),
        ({"text": {"dim": None}}, "text.dim is None"),
        ({"text": {"rotary_base": "10000"}}, "text.rotary_base is '10000', which is not float"),
        ({"text": {"tau": 1}}, "text.tau is 1, which is not bool"),
        ({"vision": {"pixel_dtype": "int8"}}, "vision.pixel_dtype is 'int8'"),
        ({"tokenizer": {"templates": {"query": {"prefix": "1 2"}}}}, "templates.query.prefix is '1 2'"),
        ({"tokenizer": {"templates": {"query": {"prefix": [1, "2"]}}}}, "templates.query.prefix is [1, '2']"),
    ],
)
def test_values_of_the_wrong_kind_are_named(document: object, said: str) -> None:
    assert said in refused(document)


@pytest.mark.parametrize(
    ("section", "values", "said"),
    [
        ("text", {"dim": 0}, "text.dim is 0, and at least 1 is needed"),
        ("text", {"n_layers": -3}, "text.n_layers is -3"),
        ("text", {"n_heads": 30}, "text.dim 2048 does not divide into 30 heads"),
        ("text", {"dim": 320, "n_heads": 32}, "heads of 10 cannot rotate half of their entries in pairs"),
        ("text", {"n_kv_heads": 5}, "text.n_heads 32 is no multiple of n_kv_heads 5"),
        ("text", {"tau": True, "n_kv_heads": 8}, "tau scales the values of 32 heads"),
        ("text", {"moe": {"num_experts": 4}}, "8 experts_per_token exceed 4 num_experts"),
        ("text", {"moe": {"start_layer": -1}}, "text.moe.start_layer is -1, and at least 0 is needed"),
        ("text", {"max_context": 730}, "text.max_context 730 leaves no room behind 730 positions"),
        ("text", {"vocab_size": 1000}, "lie outside the vocabulary of 1000"),
        ("vision", {"enc_n_heads": 7}, "vision.enc_dim 1152 does not divide into 7 heads"),
        ("vision", {"crop_size": 380}, "vision.crop_size 380 is no multiple of enc_patch_size 14"),
        ("vision", {"in_channels": 4}, "vision.in_channels is 4, and pictures have 3"),
        ("vision", {"overlap_margin": 14}, "vision.overlap_margin 14 leaves nothing of a crop of 27 patches"),
        ("vision", {"proj_out_dim": 1024}, "vision.proj_out_dim 1024 is not text.dim 2048"),
        ("region", {"dim": 1024}, "region.dim 1024 is not text.dim 2048"),
        ("region", {"coord_feat_dim": 7}, "region.coord_feat_dim 7 is odd"),
        ("region", {"size_out_dim": 2}, "region.size_out_dim leaves a single size"),
        ("tokenizer", {"coord_id": 99_999}, "tokenizer ids [99999] lie outside the vocabulary of 51200"),
        ("tokenizer", {"templates": {"point": {"suffix": [-1]}}}, "tokenizer ids [-1] lie outside"),
    ],
)
def test_impossible_dimensions_are_named(section: str, values: dict[str, Any], said: str) -> None:
    message = refused({section: values})
    assert message.startswith("config.json describes no possible model: ") and said in message


def test_all_that_is_impossible_is_said_at_once() -> None:
    message = refused({"text": {"n_heads": 30}, "vision": {"in_channels": 1}, "region": {"dim": 8}})
    assert message.count(";") >= 2


SECTIONS = "config model_type text vision region tokenizer templates query caption short prefix moe"
FIELDS = "dim n_heads n_kv_heads vocab_size rotary_base tau eos_id enc_patch_size crop_size overlap_margin"
KEYS = st.sampled_from(f"{SECTIONS} {FIELDS} inner_dim size_out_dim num_experts nobody_knows".split())
ATOMS = (
    st.none() | st.booleans() | st.integers(-5, 60_000) | st.floats() | st.sampled_from(["moondream3", ""])
)
DOCUMENTS = st.recursive(ATOMS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner))


@given(DOCUMENTS)
def test_any_json_is_a_possible_model_or_one_clear_refusal(document: object) -> None:
    try:
        config = parse_config(document)
    except BadCheckpoint as refusal:
        assert "config.json" in str(refusal)
    else:
        validate(config)
