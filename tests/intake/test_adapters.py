"""The store of adapters: which names reach which files, what is kept in memory, and who waits for whom."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from text_adapters import Clock, Text, TextReader

from kestrel_core.intake.adapters import ATTEMPTS, AdapterStore
from kestrel_core.protocol.errors import BadAdapter, KestrelError, UnknownAdapter


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "adapters"


def fill(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def store(folder: Path, reader: TextReader | None = None, max_cached_bytes: int = 100) -> AdapterStore[Text]:
    return AdapterStore(reader or TextReader(), folder, clock=Clock(), max_cached_bytes=max_cached_bytes)


def refusal(store: AdapterStore[Text], name: str) -> KestrelError:
    with pytest.raises((UnknownAdapter, BadAdapter)) as caught:
        store.resolve(name)
    assert "\n" not in str(caught.value) and "/tmp" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("files", "name", "found"),
    [
        (["x.pt"], "x", "x.pt"),
        (["x.pt"], "x.pt", "x.pt"),
        (["x.pt", "x.safetensors"], "x", "x.safetensors"),
        (["x.pt", "x.safetensors"], "x.pt", "x.pt"),
        (["x/final.pt"], "x", "x/final.pt"),
        (["x/final.pt", "x.safetensors"], "x", "x/final.pt"),
        (["a/b.safetensors", "a/c.pt"], "a/b", "a/b.safetensors"),
        (["a/x/adapter_config.json", "a/x/adapter_model.safetensors"], "a/x", "a/x/adapter_config.json"),
        (["01ABC@12.pt"], "01ABC@12", "01ABC@12.pt"),
        (["v1.5.pt"], "v1.5", "v1.5.pt"),
        (["x/a.pt", "x/b.pt", "x.pt"], "x", "x.pt"),  # x/ only holds others
    ],
)
def test_a_name_reaches_a_file_or_a_folder(folder: Path, files: list[str], name: str, found: str) -> None:
    fill(folder, *files)
    assert store(folder).resolve(name) == Text(found)


@pytest.mark.parametrize(
    "name",
    [
        "../secret",
        "../secret.pt",
        "a/../../secret",
        "./x",
        "a//x",
        "/",
        "",
        ".",
        "..",
        "/etc/passwd",
        "x\0.pt",
        "x\n",
        ".hidden",
        "a/.hidden",
        "x" * 256,
        "x" * 250,
        "y",
        "x.txt",
        "x/",
    ],
)
def test_no_other_name_reaches_anything(folder: Path, name: str) -> None:
    fill(folder, "x.pt", "a/x.pt", "a/y.pt", ".hidden.pt", "a/.hidden.pt", "x.txt", "../secret.pt")
    reader = TextReader()
    error = refusal(store(folder, reader), name)
    assert isinstance(error, UnknownAdapter) and "there is no adapter" in str(error)
    assert reader.paths == []


def test_an_absolute_path_below_the_folder_is_no_name_either(folder: Path) -> None:
    fill(folder, "x.pt")
    with pytest.raises(UnknownAdapter):
        store(folder).resolve(str(folder / "x.pt"))


def test_an_unknown_name_is_answered_with_the_nearest(folder: Path) -> None:
    fill(folder, "french.pt", "german.pt")
    assert "did you mean french?" in str(refusal(store(folder), "frensh"))
    assert "known are french, german" in str(refusal(store(folder), "zzz"))


@pytest.mark.parametrize("link", ["x.pt", "x", "x/final.pt"])
def test_a_link_that_leaves_the_folder_is_refused(folder: Path, tmp_path: Path, link: str) -> None:
    fill(tmp_path, "outside/final.pt")
    (folder / link).parent.mkdir(parents=True)
    outside = tmp_path / "outside"
    (folder / link).symlink_to(outside if link == "x" else outside / "final.pt")
    assert "leaves the folder of adapters" in str(refusal(store(folder), "x"))


def test_a_link_within_the_folder_is_a_second_name(folder: Path) -> None:
    fill(folder, "x.pt")
    (folder / "y.pt").symlink_to(folder / "x.pt")
    assert store(folder).resolve("y") == Text("x.pt")


def test_what_a_link_reaches_outside_the_folder_is_not_listed(folder: Path, tmp_path: Path) -> None:
    fill(folder, "x.pt", "team/y.pt", "team/z.pt")
    fill(tmp_path, "outside/final.pt", "others/private.pt", "others/secret.pt")
    for link, place in (
        *(("whole", "outside"), ("several", "others"), ("single.pt", "outside/final.pt")),
        *(("inside", "adapters/team"), ("inside.pt", "adapters/x.pt")),
    ):
        (folder / link).symlink_to(tmp_path / place)
    adapters = store(folder)
    assert adapters.names() == ("inside", "inside/y", "inside/z", "team/y", "team/z", "x")
    assert "private" not in str(refusal(adapters, "privat"))


def test_a_link_of_the_folder_itself_is_followed(folder: Path, tmp_path: Path) -> None:
    fill(folder, "x.pt")
    (tmp_path / "link").symlink_to(folder)
    adapters = store(tmp_path / "link")
    assert adapters.names() == ("x",) and adapters.resolve("x") == Text("x.pt")


def test_links_to_nowhere_and_pipes_are_not_listed(folder: Path) -> None:
    fill(folder, "x.pt")
    (folder / "gone.pt").symlink_to(folder / "nowhere.pt")
    (folder / "self.pt").symlink_to(folder / "self.pt")
    os.mkfifo(folder / "pipe.pt")
    assert store(folder).names() == ("x",)
    assert store(folder / "self.pt").names() == ()


def test_the_names_are_listed_sorted_and_without_suffixes(folder: Path) -> None:
    fill(folder, "x.pt", "x.safetensors", "b/final.pt", "a/c.pt", "a/d.pt", ".h.pt", ".g/x.pt", "README.md")
    assert store(folder).names() == ("a/c", "a/d", "b", "x")
    (folder / "empty").mkdir()
    assert store(folder).names() == ("a/c", "a/d", "b", "x")


def test_the_names_are_looked_up_again_after_a_while(folder: Path) -> None:
    clock = Clock()
    fill(folder, "x.pt")
    adapters = AdapterStore(TextReader(), folder, clock=clock)
    assert adapters.names() == ("x",)
    fill(folder, "y.pt")
    assert adapters.names() == ("x",)
    clock.now = 1.0
    assert adapters.names() == ("x", "y")


def test_without_a_folder_there_are_no_names(tmp_path: Path) -> None:
    adapters = AdapterStore(TextReader())
    assert adapters.names() == ()
    assert "known are none" in str(refusal(adapters, "x"))
    assert store(tmp_path / "nowhere").names() == ()


def test_a_file_is_read_once_as_long_as_it_stays(folder: Path) -> None:
    fill(folder, "x.pt", "broken.pt")
    reader = TextReader()
    adapters = store(folder, reader)
    assert adapters.resolve("x") is adapters.resolve("x") is adapters.resolve("x.pt")
    for _ in range(2):
        assert 'adapter "broken" cannot be used: it is broken' in str(refusal(adapters, "broken"))
    assert [path.name for path in reader.paths] == ["x.pt", "broken.pt"]


def test_a_replaced_file_is_another_adapter(folder: Path) -> None:
    fill(folder, "x.pt", "y/final.pt")
    adapters = store(folder)
    adapters.resolve("x")
    adapters.resolve("y")
    for name in ("x.pt", "y/final.pt"):
        (folder / "new").write_text("newer")
        os.replace(folder / "new", folder / name)
    assert adapters.resolve("x") == adapters.resolve("y") == Text("newer")


def test_a_broken_file_that_is_mended_works(folder: Path) -> None:
    fill(folder, "x.pt")
    (folder / "x.pt").write_text("broken")
    adapters = store(folder)
    refusal(adapters, "x")
    (folder / "x.pt").write_text("mended")
    assert adapters.resolve("x") == Text("mended")


def test_a_file_replaced_while_it_is_read_is_read_again(folder: Path) -> None:
    fill(folder, "x.pt")
    reader = TextReader()
    adapters = store(folder, reader)

    def replace_once(path: Path) -> None:
        reader.meanwhile = lambda path: None
        path.write_text("a longer text")

    reader.meanwhile = replace_once
    assert adapters.resolve("x") == Text("a longer text")
    assert len(reader.paths) == 2


def test_a_file_that_never_rests_is_refused_and_works_later(folder: Path) -> None:
    fill(folder, "x.pt")
    reader = TextReader()
    adapters = store(folder, reader)
    reader.meanwhile = lambda path: path.write_text(path.read_text() + "x")
    assert "being replaced" in str(refusal(adapters, "x"))
    assert len(reader.paths) == ATTEMPTS
    reader.meanwhile = lambda path: None
    assert adapters.resolve("x") == Text("x.pt" + ATTEMPTS * "x")


def test_a_file_that_goes_away_while_it_is_read_is_refused(folder: Path) -> None:
    fill(folder, "x.pt")
    reader = TextReader()
    reader.meanwhile = Path.unlink
    assert "cannot be read" in str(refusal(store(folder, reader), "x"))


def test_memory_holds_the_last_used_within_the_limit(folder: Path) -> None:
    fill(folder, "a.pt", "b.pt", "c.pt")  # 4 bytes each
    reader = TextReader()
    adapters = store(folder, reader, max_cached_bytes=8)
    for name in "abacba":
        adapters.resolve(name)
    assert "".join(path.stem for path in reader.paths) == "abcba"


def test_the_last_one_stays_whatever_its_size(folder: Path) -> None:
    fill(folder, "a.pt", "b.pt")
    reader = TextReader()
    adapters = store(folder, reader, max_cached_bytes=1)
    for name in "aabba":
        adapters.resolve(name)
    assert "".join(path.stem for path in reader.paths) == "aba"


@pytest.mark.parametrize("content", ["fine", "broken"])
def test_all_who_ask_while_it_is_read_get_the_same(folder: Path, content: str) -> None:
    fill(folder, "x.pt", "y.pt")
    (folder / "x.pt").write_text(content)
    reader, reading, go_on = TextReader(), threading.Event(), threading.Event()

    def wait(path: Path) -> None:
        if path.name == "x.pt":
            reading.set()
            assert go_on.wait(60)

    reader.meanwhile = wait
    adapters = store(folder, reader)
    with ThreadPoolExecutor(5) as threads:
        first = threads.submit(adapters.resolve, "x")
        assert reading.wait(60)
        others = [threads.submit(adapters.resolve, "x") for _ in range(3)]
        assert adapters.resolve("y") == Text("y.pt")  # waits for nobody
        go_on.set()
        outcomes = [one.exception(30) or one.result() for one in (first, *others)]
    assert [path.name for path in reader.paths].count("x.pt") == 1
    if content == "fine":
        assert outcomes == [Text("fine")] * 4
    else:
        assert {str(error) for error in outcomes} == {'adapter "x" cannot be used: it is broken'}
        assert len(set(map(id, outcomes))) == 4  # nobody's traceback grows by the others'


def test_local_names_ask_no_network(folder: Path) -> None:
    fill(folder, "org/x.pt", "org/y.pt", "01ABC@12.pt")
    adapters = AdapterStore(TextReader(), folder, hub=True, api_key="key")
    adapters.names()
    assert [adapters.is_local(name) for name in ("org/x", "01ABC@12", "../x", "a b")] == [True] * 4
    assert [adapters.is_local(name) for name in ("org/z", "org/z@main", "01ABC@13", "variant")] == [False] * 4
    plain = AdapterStore(TextReader(), folder)
    assert all(plain.is_local(name) for name in ("org/z", "01ABC@13", "variant"))


def test_a_local_name_wins_over_remote_ones(folder: Path) -> None:
    fill(folder, "org/x.pt", "01ABC@12.pt")
    adapters = AdapterStore(TextReader(), folder, hub=True, api_key="key")
    assert adapters.resolve("org/x") == Text("org/x.pt")
    assert adapters.resolve("01ABC@12") == Text("01ABC@12.pt")
