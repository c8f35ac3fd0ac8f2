"""Adapters from a hub on this machine: what is fetched, what is refused, and what the cache is good for."""

import logging
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants
from local_hub import Hub, commit_of, put, serving
from text_adapters import Clock, Text, TextReader

from kestrel_core.intake.adapters import FAILURE_S, AdapterStore
from kestrel_core.protocol.errors import AdapterUnreachable, BadAdapter, KestrelError, UnknownAdapter

PEFT = {"adapter_config.json": '{"r": 8}', "adapter_model.safetensors": "numbers"}


@pytest.fixture
def hub(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    repos = {
        "org/peft": {**PEFT, "README.md": "words", "adapter_model.bin": "code", "old/final.pt": "x"},
        "org/own": {"final.pt": "own numbers", "config.json": "{}", "optimizer.pt": "x" * 5000},
        "org/single": {"lora.safetensors": "single numbers", "train.py": "code"},
        "org/many": {"a.safetensors": "a", "b.safetensors": "b"},
        "org/pickle": {"adapter_config.json": "{}", "adapter_model.bin": "code"},
        "org/large": {"final.pt": "x" * 5001},
    }
    with serving(Hub(repos), monkeypatch) as hub:
        yield hub


class Setting:
    """A store that may ask the hub."""

    def __init__(self, download_s: float = 60.0) -> None:
        self.reader, self.clock = TextReader(), Clock()
        self.store = AdapterStore(
            self.reader, hub=True, max_download_bytes=5000, download_s=download_s, clock=self.clock
        )

    def refusal(self, name: str) -> KestrelError:
        with pytest.raises((UnknownAdapter, BadAdapter, AdapterUnreachable)) as caught:
            self.store.resolve(name)
        assert "\n" not in str(caught.value) and name in str(caught.value)
        return caught.value


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("org/peft", {*PEFT}),
        ("org/own", {"final.pt"}),
        ("org/single", {"lora.safetensors"}),
    ],
)
def test_only_the_files_of_the_adapter_are_fetched(hub: Hub, name: str, files: set[str]) -> None:
    setting = Setting()
    assert setting.store.resolve(name) == Text(hub.repos[name][min(files)])
    assert set(hub.files) == files
    [folder] = setting.reader.paths
    assert folder.name == commit_of(name)
    assert {file.name for file in folder.iterdir()} == files


def test_a_revision_is_resolved_once(hub: Hub) -> None:
    setting = Setting()
    for _ in range(3):
        setting.store.resolve("org/peft@v1.0")
    assert hub.revisions == [("org/peft", "v1.0"), ("org/peft", commit_of("org/peft"))]
    assert setting.store.is_local("org/peft@v1.0") and not setting.store.is_local("org/peft")


def test_a_commit_can_be_asked_for(hub: Hub) -> None:
    assert Setting().store.resolve(f"org/peft@{commit_of('org/peft')}") == Text('{"r": 8}')
    assert hub.revisions == [("org/peft", commit_of("org/peft"))]


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("org/nothing", UnknownAdapter, "there is no adapter"),
        ("org/peft@gone", UnknownAdapter, "there is no adapter"),
        ("org/gated", UnknownAdapter, "HF_TOKEN"),
        ("org/many", BadAdapter, "holds no adapter: looked for"),
        ("org/pickle", BadAdapter, "holds no adapter: looked for"),
        ("org/large", BadAdapter, "has 5,001 bytes, and no more than 5,000 are downloaded"),
        ("org/down", AdapterUnreachable, "could not be downloaded"),
    ],
)
def test_what_cannot_be_had_is_refused_and_nothing_fetched(
    hub: Hub, name: str, kind: type[KestrelError], said: str
) -> None:
    hub.refuse |= {"org/gated": (403, "GatedRepo"), "org/down": (500, "")}
    hub.unknown.add("gone")
    error = Setting().refusal(name)
    assert type(error) is kind and said in str(error)
    assert hub.files == []


@pytest.mark.parametrize(
    "name", ["org/../x", "org/x@../../y", "a/b/c", "org/", "-org/x", "org/x@", "org/x y"]
)
def test_what_is_no_id_is_not_asked_for(hub: Hub, name: str) -> None:
    setting = Setting()
    assert type(setting.refusal(name)) is UnknownAdapter
    assert hub.revisions == [] and setting.store.is_local(name)


def test_a_failure_is_not_asked_for_again_until_some_time_has_passed(hub: Hub) -> None:
    setting = Setting()
    hub.refuse["org/peft"] = (500, "")
    first = setting.refusal("org/peft")
    del hub.refuse["org/peft"]
    assert str(setting.refusal("org/peft")) == str(first)
    setting.clock.now = FAILURE_S
    assert setting.store.resolve("org/peft") == Text('{"r": 8}')


def test_without_the_hub_the_cache_is_used(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("org/peft", "org/own@v2", "org/single"):
        Setting().store.resolve(name)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")  # nobody listens there
    for name, said in (
        ("org/peft", '{"r": 8}'),
        ("org/own@v2", "own numbers"),
        ("org/single", "single numbers"),
    ):
        assert Setting().store.resolve(name) == Text(said)
    assert isinstance(Setting().refusal("org/peft@v2"), AdapterUnreachable)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert Setting().store.resolve("org/peft") == Text('{"r": 8}')
    assert isinstance(Setting().refusal("org/peft@v2"), AdapterUnreachable)


def test_a_download_that_breaks_off_is_no_adapter_in_the_cache(hub: Hub) -> None:
    hub.lost.add("adapter_model.safetensors")
    setting = Setting()
    assert isinstance(setting.refusal("org/peft"), AdapterUnreachable)
    assert setting.reader.paths == []


@pytest.mark.parametrize("there", PEFT)
def test_a_cache_with_half_an_adapter_is_not_used_and_the_whole_is_fetched_later(
    hub: Hub, cache: Path, there: str
) -> None:
    put(cache, "org/peft", "main", {there: PEFT[there]})
    hub.refuse["org/peft"] = (500, "")
    setting = Setting()
    assert isinstance(setting.refusal("org/peft"), AdapterUnreachable)
    del hub.refuse["org/peft"]
    setting.clock.now = FAILURE_S
    assert setting.store.resolve("org/peft") == Text('{"r": 8}')


def test_a_download_takes_no_longer_than_its_time(hub: Hub) -> None:
    hub.held_back["final.pt"] = threading.Event()
    try:
        error = Setting(download_s=0.5).refusal("org/own")
        assert isinstance(error, AdapterUnreachable) and "it took more than 0.5 s" in str(error)
    finally:
        hub.held_back["final.pt"].set()


def test_progress_is_in_the_log(hub: Hub, caplog: pytest.LogCaptureFixture) -> None:
    """Of all files together, though the second one begins only when the first is told of."""
    second = hub.held_back["adapter_model.safetensors"] = threading.Event()

    def note(record: logging.LogRecord) -> bool:
        if re.search(r"org/peft: \d+ of", record.getMessage()):
            second.set()
        return True

    with caplog.at_level(logging.INFO, logger="kestrel"), caplog.filtering(note):
        Setting().store.resolve("org/peft")
    first, size = len(PEFT["adapter_config.json"]), sum(map(len, PEFT.values()))
    # The download that the test before left behind may still tell its own.
    begun, some, whole = (message for message in caplog.messages if "org/peft" in message)
    assert f"fetching {size} bytes of commit {commit_of('org/peft')}" in begun
    assert some.endswith(f"org/peft: {first} of {size} bytes")
    assert whole.endswith(f"org/peft: {size} of {size} bytes")


def test_without_the_switch_the_hub_is_not_asked(hub: Hub) -> None:
    with pytest.raises(UnknownAdapter):
        AdapterStore(TextReader()).resolve("org/peft")
    assert hub.revisions == []
