"""Downloads against a small hub on this machine, and the cache without any."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants
from local_hub import Hub, commit_of, put, serving

from kestrel_core.intake.hub import fetch_model
from kestrel_core.intake.models import MODELS
from kestrel_core.protocol.errors import BadCheckpoint

TOKENIZER = "moondream/starmie-v1"
INDEX = json.dumps({"weight_map": {"a": "part-1.safetensors", "b": "part-2.safetensors"}})
PREVIEW = {
    "config.json": "{}",
    "model.safetensors.index.json": INDEX,
    "part-1.safetensors": "a" * 3000,
    "part-2.safetensors": "b" * 5000,
}


@pytest.fixture
def hub(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    made = Hub(
        {
            TOKENIZER: {"tokenizer.json": "{}", "README.md": "words"},
            "moondream/moondream3-preview": {**PREVIEW, "hf_moondream.py": "code", "old/x.safetensors": "x"},
            "vikhyatk/moondream2": {"config.json": "{}", "model.safetensors": "w", "tokenizer.json": "old"},
        }
    )
    with serving(made, monkeypatch) as hub:
        yield hub


def refusal(name: str) -> str:
    with pytest.raises(BadCheckpoint) as caught:
        fetch_model(name)
    return str(caught.value)


def test_the_known_models_and_their_repositories() -> None:
    published = {name: model.repository for name, model in MODELS.items() if model.repository is not None}
    assert {name: (repo.name, repo.revision, repo.kind) for name, repo in published.items()} == {
        "moondream2": ("vikhyatk/moondream2", "2025-06-21", "tag"),
        "moondream3-preview": ("moondream/moondream3-preview", "main", "branch"),
        "moondream3.1-9B-A2B": ("moondream/moondream3.1-9B-A2B", "main", "branch"),
    }


def test_every_model_is_published_or_comes_along() -> None:
    for name, model in MODELS.items():
        assert model.name == name and model.description
        assert (model.repository is None) is (model.folder is not None)
        assert model.folder is None or (model.folder / "model.safetensors").is_file()


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    message = refusal("moondream4")
    assert 'no model "moondream4"' in message
    assert all(name in message for name in MODELS)


def test_config_and_weights_are_downloaded_and_nothing_else(hub: Hub) -> None:
    files = fetch_model("moondream3-preview")
    assert {path.name: path.read_text() for path in files.folder.iterdir()} == PREVIEW
    assert files.tokenizer.read_text() == "{}"
    assert set(hub.files) == {*PREVIEW, "tokenizer.json"}
    assert files.folder.name == commit_of("moondream/moondream3-preview")


def test_a_revision_is_resolved_once_and_moondream_2_gets_the_current_tokenizer(hub: Hub) -> None:
    files = fetch_model("moondream2")
    assert hub.revisions == [(TOKENIZER, "main"), ("vikhyatk/moondream2", "2025-06-21")]
    assert files.tokenizer.read_text() == "{}"
    assert {path.name for path in files.folder.iterdir()} == {"config.json", "model.safetensors"}


COMMIT = commit_of("moondream/moondream3-preview")


@pytest.mark.parametrize(
    ("name", "revision", "said"),
    [
        ("moondream3-preview", None, ["revision main is a branch and may change", "starmie-v1"]),
        ("moondream2", None, ["revision 2025-06-21 is a tag, and tags can be moved", "starmie-v1"]),
        ("moondream2", "next", ["revision next is no commit and may change", "starmie-v1"]),
        ("moondream3-preview", COMMIT, ["starmie-v1"]),
    ],
)
def test_what_is_not_pinned_to_a_commit_is_named_with_the_commit_it_is_now(
    name: str, revision: str | None, said: list[str], hub: Hub, caplog: pytest.LogCaptureFixture
) -> None:
    fetch_model(name, revision=revision)
    repository = MODELS[name].repository
    assert repository is not None
    if revision != COMMIT:  # which needs no asking what it is
        assert hub.revisions[-1] == (repository.name, revision or repository.revision)
    messages = [record.getMessage() for record in caplog.records if record.name == "kestrel"]
    assert len(messages) == len(said)
    for message, part in zip(messages, said, strict=True):
        assert message.startswith(f"{name}: ") and part in message
    if len(said) > 1:
        assert f"pin it with --revision {commit_of(repository.name)}" in messages[0]


def test_progress_counts_the_bytes(hub: Hub) -> None:
    steps: list[tuple[int, int]] = []
    fetch_model("moondream3-preview", lambda done, total: steps.append((done, total)))
    total = sum(len(text) for text in PREVIEW.values())
    assert steps[-1] == (total, total)
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)


def test_what_is_cached_is_not_downloaded_again(hub: Hub) -> None:
    first = fetch_model("moondream3-preview")
    hub.files.clear()
    assert fetch_model("moondream3-preview") == first
    assert hub.files == []


@pytest.mark.parametrize(("status", "code"), [(401, "GatedRepo"), (403, "GatedRepo"), (401, ""), (403, "")])
def test_a_refused_repository_asks_for_a_token(hub: Hub, status: int, code: str) -> None:
    hub.refuse["moondream/moondream3-preview"] = (status, code)
    message = refusal("moondream3-preview")
    assert "moondream/moondream3-preview" in message and "HF_TOKEN" in message


def test_a_download_that_breaks_off_is_an_error_and_is_taken_up_again(hub: Hub) -> None:
    hub.lost.add("part-2.safetensors")
    assert "could not be downloaded" in refusal("moondream3-preview")
    hub.lost.clear()
    hub.files.clear()
    assert {path.name for path in fetch_model("moondream3-preview").folder.iterdir()} == PREVIEW.keys()
    assert set(hub.files) == {"part-2.safetensors"}


def test_a_complete_cache_needs_no_network(cache: Path) -> None:
    folder = put(cache, "moondream/moondream3-preview", "main", PREVIEW)
    tokenizer = put(cache, TOKENIZER, "main", {"tokenizer.json": "{}"}) / "tokenizer.json"
    files = fetch_model("moondream3-preview")
    assert (files.folder, files.tokenizer) == (folder, tokenizer)


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors.index.json", "part-2.safetensors"])
def test_a_partial_cache_without_network_says_what_to_download(cache: Path, missing: str) -> None:
    put(cache, TOKENIZER, "main", {"tokenizer.json": "{}"})
    rest = {name: text for name, text in PREVIEW.items() if name != missing}
    put(cache, "moondream/moondream3-preview", "main", rest)
    message = refusal("moondream3-preview")
    assert "moondream/moondream3-preview" in message and "*.safetensors" in message
    assert TOKENIZER in message and "KESTREL_MODEL_PATH" in message


def test_an_empty_cache_without_network_says_what_to_download(cache: Path) -> None:
    message = refusal("moondream2")
    assert "vikhyatk/moondream2 (revision 2025-06-21)" in message and "KESTREL_MODEL_PATH" in message


def test_a_hub_that_is_down_leaves_the_cache_in_use(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    first = fetch_model("moondream3-preview")
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")  # nobody listens there
    assert fetch_model("moondream3-preview") == first
