"""The file of keys is checked strictly, and what is wrong is told in one sentence."""

from pathlib import Path

import pytest

from kestrel_core.protocol.errors import KestrelError
from kestrel_gateway.admission.key_file import make_key, read_keys

A, B = "ab" * 32, "cd" * 32


def one(more: str = "", name: str = "alice", sha256: str = A) -> str:
    return f'[[keys]]\nname = "{name}"\nsha256 = "{sha256}"\n{more}\n'


def test_everything_that_a_key_may_say(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    path.write_text(
        "salt_cache = true\n"
        + one('requests_per_minute = 60\nconcurrent = 4\nskills = ["query"]\nadapters = []')
        + one("salt_cache = false", "bob", B.upper())
    )
    alice, bob = read_keys(path)
    assert (alice.name, alice.digest, alice.requests_per_minute) == ("alice", bytes.fromhex(A), 60)
    assert (alice.concurrent, alice.skills, alice.adapters) == (4, {"query"}, frozenset())
    assert (alice.salt_cache, bob.salt_cache) == (True, False)
    assert (bob.digest, bob.skills, bob.adapters) == (bytes.fromhex(B), None, None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[keys]\n", "line 1"),
        ("", "there is no key"),
        ("keys = 3", "there is no key"),
        ("keys = [3]", "there is no key"),
        ("salt_cash = true\n" + one(), 'the file has an unknown field "salt_cash"; did you mean salt_cache?'),
        (one("request_per_minute = 3"), "key alice has an unknown field"),
        (one("request_per_minute = 3"), "did you mean requests_per_minute?"),
        (one("requests_per_minute = 0"), "key alice: requests_per_minute must be a whole number from 1"),
        (one("requests_per_minute = true"), "requests_per_minute must be"),
        (one("concurrent = 1.5"), "concurrent must be"),
        (one('skills = "query"'), "skills must be a list of names"),
        (one("skills = []"), "skills is empty"),
        (one("adapters = [1]"), "adapters must be a list of names"),
        (one("priority = -5"), "priority must be the best and the worst that it may ask for"),
        (one("priority = [5, -5]"), "as in [-10, 10]"),
        (one("priority = [-11, 0]"), "as in [-10, 10]"),
        (one("priority = [true, 5]"), "as in [-10, 10]"),
        (one("salt_cache = 1"), "salt_cache must be true or false"),
        (one(sha256="xy"), "key alice: sha256 must be 64 hex digits"),
        (one(name="a b"), "key 1 of the file: name is 'a b'"),
        (one() + '[[keys]]\nsha256 = "' + B + '"', "key 2 of the file: name is None"),
        (one() + one(sha256=B), "two keys alice"),
        (one() + one(name="bob"), "key bob has the sha256 of another"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "keys.toml"
    path.write_text(text)
    with pytest.raises(KestrelError) as caught:
        read_keys(path)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_file_that_the_documentation_shows_is_taken(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs/gateway.md").read_text()
    path = tmp_path / "keys.toml"
    path.write_text(page.partition("```toml\n")[2].partition("```")[0])
    [alice] = read_keys(path)
    assert (alice.name, alice.requests_per_minute, alice.salt_cache) == ("alice", 60, False)
    assert alice.priority == (-5, 10)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(KestrelError, match=r"none\.toml: No such file"):
        read_keys(tmp_path / "none.toml")


def test_a_new_key_needs_a_name_that_a_log_can_hold() -> None:
    with pytest.raises(KestrelError, match="1 to 64 letters"):
        make_key("a\nb")
