"""client/run.py against a server that says what the test tells it to."""

import json
import subprocess
import sys
from pathlib import Path

import grpc
import pytest
from client.fake_triton import OUTPUTS, FakeTriton, break_off, refuse, say
from PIL import Image

from kestrel_client import command, completion

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "client/samples/shapes.png"


def run(fake: FakeTriton, *options: str, image: Path = SAMPLE) -> int:
    return command.main(["--url", fake.url, "--image", str(image), *options])


def test_every_skill_is_asked_once_and_shown(fake: FakeTriton, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(fake, "--question", "how many?", "--object", "circle") == 0
    assert [asked.skill for asked in fake.asked] == list(command.SKILLS)
    assert fake.asked[0].inputs["QUESTION"] == [b"how many?"]
    assert {asked.inputs["OBJECT"][0] for asked in fake.asked[2:]} == {b"circle"}
    assert {asked.inputs["IMAGE"][0] for asked in fake.asked} == {SAMPLE.read_bytes()}
    shown = capsys.readouterr().out
    assert "caption: a red circle\n" in shown  # live, before the table
    assert all(skill in shown for skill in command.SKILLS)
    assert "1: (0.25, 0.50)" in shown


def test_without_streaming_each_answer_comes_in_one_piece(
    fake: FakeTriton, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(fake, "--no-stream", "--skill", "caption", "--max-tokens", "9") == 0
    [asked] = fake.asked
    assert asked.inputs["MAX_TOKENS"] == [9]
    assert not asked.stream
    assert "caption: a red" not in capsys.readouterr().out


def test_an_adapter_is_named_to_every_skill(fake: FakeTriton) -> None:
    assert run(fake, "--adapter", "french") == 0
    assert [asked.inputs["ADAPTER"] for asked in fake.asked] == [[b"french"]] * len(command.SKILLS)


def test_json_is_one_document_and_nothing_else(fake: FakeTriton, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(fake, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["url"], document["image"]) == (fake.url, str(SAMPLE))
    assert list(document["skills"]) == list(command.SKILLS)
    for skill, told in document["skills"].items():
        assert OUTPUTS[skill].items() <= told["response"].items()
        assert told["time_ms"] > 0
    assert document["skills"]["caption"]["first_text_ms"] > 0


def test_a_skill_the_model_lacks_is_shown_as_such_and_is_no_failure(
    fake: FakeTriton, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.scripts += [refuse("INVALID_ARG: unsupported_skill: segment is not supported by this model")] * 2
    assert run(fake, "--skill", "segment") == 0
    assert "not a skill of this model" in capsys.readouterr().out
    assert run(fake, "--skill", "segment", "--json") == 0
    told = json.loads(capsys.readouterr().out)["skills"]["segment"]
    assert told["unsupported"]["message"] == "segment is not supported by this model"


def test_one_failed_skill_stops_no_other_and_is_told_by_the_exit_code(
    fake: FakeTriton, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.scripts.append(refuse("INTERNAL: our own fault"))
    assert run(fake, "--json") == 1
    skills = json.loads(capsys.readouterr().out)["skills"]
    assert skills["query"]["error"] == {"code": "INTERNAL", "message": "our own fault"}
    assert [skill for skill, told in skills.items() if "response" in told] == list(command.SKILLS)[1:]


def test_boxes_and_points_are_drawn_onto_a_copy(fake: FakeTriton, tmp_path: Path) -> None:
    before, picture, drawn = SAMPLE.read_bytes(), tmp_path / "plain.png", tmp_path / "drawn.png"
    Image.new("RGB", (1000, 500), "black").save(picture)
    assert run(fake, "--draw", str(drawn), "--object", "circle", image=picture) == 0
    with Image.open(drawn) as copy:
        assert copy.size == (1000, 500)
        assert copy.getpixel((100, 150)) == (255, 64, 64)  # the left side of the box
        assert copy.getpixel((200, 150)) == (0, 0, 0)  # and nothing inside
        assert copy.getpixel((250, 250)) == (64, 160, 255)  # the point
    assert SAMPLE.read_bytes() == before


def test_pictures_of_one_name_are_drawn_to_files_of_their_own(fake: FakeTriton, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        Image.new("RGB", (10, 10)).save(tmp_path / folder / "a.png")
    more = ("--image", str(tmp_path / "two/a.png"), "--draw", str(tmp_path / "out.png"), "--skill", "point")
    assert run(fake, *more, image=tmp_path / "one/a.png") == 0
    assert sorted(path.name for path in tmp_path.glob("*.png")) == ["out-1-a.png", "out-2-a.png"]


def test_a_skill_of_the_servers_own_is_asked_with_all_that_is_given(fake: FakeTriton) -> None:
    fake.scripts.append(refuse("INVALID_ARG: no"))
    assert run(fake, "--skill", "tell", "--argument", "least=2", "--max-tokens", "7") == 1
    assert fake.asked[0].inputs["MAX_TOKENS"] == [7]
    assert json.loads(fake.asked[0].inputs["ARGUMENTS"][0]) == {"least": 2}


@pytest.mark.parametrize("skill", ["all", "detect"])
def test_an_argument_without_a_skill_for_it_is_refused_before_anything_is_asked(
    fake: FakeTriton, capsys: pytest.CaptureFixture[str], skill: str
) -> None:
    assert run(fake, "--skill", skill, "--argument", "least=2") == 2
    assert not fake.asked and "--argument is for a skill" in capsys.readouterr().err


def test_coordinates_are_those_of_the_picture_as_shown(fake: FakeTriton, tmp_path: Path) -> None:
    picture, drawn = tmp_path / "turned.jpg", tmp_path / "drawn.png"
    lying = Image.new("RGB", (400, 200))
    exif = lying.getexif()
    exif[0x0112] = 6
    lying.save(picture, exif=exif)
    assert run(fake, "--draw", str(drawn), "--skill", "point", image=picture) == 0
    with Image.open(drawn) as copy:
        assert copy.size == (200, 400)
        assert copy.getpixel((50, 200)) == (64, 160, 255)


def test_drawing_without_pillow_is_refused_before_anything_is_asked(
    fake: FakeTriton, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    assert run(fake, "--draw", "out.png") == 2
    assert "--draw needs Pillow; install it with `pip install pillow`" in capsys.readouterr().err
    assert fake.asked == []


@pytest.mark.parametrize(
    ("image", "target", "complaint"),
    [
        ("LICENSE", "out.png", "LICENSE' cannot be drawn on"),
        ("client/samples/shapes.png", "out.doc", "out.doc' cannot be written"),
        ("no.jpg", "out.png", "no.jpg' cannot be read"),
    ],
)
def test_what_cannot_be_drawn_is_named(
    fake: FakeTriton,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    image: str,
    target: str,
    complaint: str,
) -> None:
    assert run(fake, "--draw", str(tmp_path / target), image=ROOT / image) == 2
    assert complaint in capsys.readouterr().err


def test_without_rich_the_table_is_plain(
    fake: FakeTriton, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in ("rich", "rich.console", "rich.table", "rich.text"):
        monkeypatch.setitem(sys.modules, module, None)
    assert run(fake, "--no-stream", "--skill", "detect") == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.split() == ["skill", "time", "first", "text", "tokens", "answer"]
    assert row.endswith("1: (0.10, 0.20)-(0.30, 0.40)")


def test_an_answer_that_looks_like_markup_is_shown_as_it_is(
    fake: FakeTriton, capsys: pytest.CaptureFixture[str]
) -> None:
    last = {"request_id": "1", "finish_reason": "stop", "answer": "[bold]x[/b]", "metrics": {}}
    fake.scripts.append(lambda asked, context: iter([say(last)]))
    assert run(fake, "--no-stream", "--skill", "query") == 0
    assert "[bold]x[/b]" in capsys.readouterr().out


def test_control_characters_of_an_answer_do_not_reach_the_terminal(
    fake: FakeTriton, capsys: pytest.CaptureFixture[str]
) -> None:
    last = {"request_id": "1", "finish_reason": "stop", "caption": "a\x1b[2J\tb\n", "metrics": {}}
    chunk = {"chunk": "a\x1b[2J\tb", "completed": False, "token_index": 1}
    fake.scripts.append(
        lambda asked, context: iter([say(chunk), say({**last, "chunk": "\n", "completed": True})])
    )
    assert run(fake, "--skill", "caption") == 0
    shown = capsys.readouterr().out
    assert "caption: a\ufffd[2J\tb\n" in shown
    assert "\x1b[2J" not in shown


def test_run_as_a_file_without_a_server_it_says_so_in_one_sentence(fake: FakeTriton) -> None:
    fake.stop()
    command_line = [sys.executable, ROOT / "client/run.py", "--url", fake.url, "--image", SAMPLE]
    done = subprocess.run(command_line, capture_output=True, text=True, timeout=60, env={})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"run.py: no Triton server answers at {fake.url}; start one with ")
    assert done.stderr.count("\n") == 1


def test_a_server_that_dies_in_the_middle_ends_the_command(
    fake: FakeTriton, capsys: pytest.CaptureFixture[str]
) -> None:
    chunk = say({"chunk": "a red ", "completed": False, "token_index": 2})
    fake.scripts.append(break_off(grpc.StatusCode.UNAVAILABLE, chunk))
    assert run(fake) == 2
    assert "went away in the middle of the answer" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["--sk"], {"--skill"}),
        (["--skill", "de"], {"detect"}),
        (["--draw", "o", "--no"], {"--no-stream"}),
        (["--question", "a"], set()),
        (["--image", "LIC"], {"LICENSE"}),
    ],
)
def test_bash_completes_what_the_parser_knows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], offered: set[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["run.py"])
    assert command.main(["--print-completion", "bash"]) == 0
    script = capsys.readouterr().out
    listed = " ".join(["run.py", *words])
    # compopt works only inside a real completion; without it file names still come.
    code = f"compopt() {{ :; }}\n{script}\nCOMP_WORDS=({listed}); COMP_CWORD={len(words)}\n_kestrel_client\n"
    code += 'printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=20)
    assert done.stderr == ""
    assert set(done.stdout.split()) == offered


def test_zsh_is_told_of_every_option() -> None:
    parser = command.make_parser()
    script = completion.script(parser, "zsh")
    for action in parser._actions:
        for flag in action.option_strings:
            assert f"'{flag}[" in script
    assert "that the server has]:value:(all query caption detect point segment)'" in script
    assert "'--image[the picture; repeatable]:file:_files'" in script
