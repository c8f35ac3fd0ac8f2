"""What the doctor says of a folder of adapters."""

from pathlib import Path

from adapter_folder import UNUSABLE, save_adapter, save_peft, save_unusable
from tiny import tiny_config

from kestrel_core.config import RuntimeConfig
from kestrel_tools.doctor.adapters import examine_adapters
from kestrel_tools.doctor.report import Report, Row, Verdict

SHAPE = tiny_config(3)


def rows(**options: str) -> list[Row]:
    report = Report()
    examine_adapters(report, RuntimeConfig(**options), SHAPE)  # type: ignore[arg-type]
    return report.rows


def test_usable_adapters_are_counted_and_others_named_with_the_reason(tmp_path: Path) -> None:
    save_adapter(tmp_path / "good.safetensors", SHAPE.text, 1)
    save_peft(tmp_path / "peft", SHAPE.text, 2)
    save_unusable(tmp_path, SHAPE.text)
    first, *others = rows(adapters=str(tmp_path))
    assert first.verdict is Verdict.OK
    assert first.found.endswith(f"{2 + len(UNUSABLE)} adapters, 2 of them usable")
    assert {row.check for row in others} == set(UNUSABLE)
    for row in others:
        _, words = UNUSABLE[row.check]
        assert row.verdict is Verdict.WARNING and words in row.found
    assert not (tmp_path / "was-run").exists(), "code in a file was run"


def test_a_folder_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    [row] = rows(adapters=str(tmp_path / "none"))
    assert row.verdict is Verdict.FAULT


def test_without_a_folder_nothing_is_looked_at() -> None:
    [row] = rows(model="moondream2")
    assert row.verdict is Verdict.SKIPPED
