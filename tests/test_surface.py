"""`import kestrel_core`: all that is public is there, and nothing heavy comes with it."""

import subprocess
import sys

import kestrel_core


def test_every_public_name_is_there() -> None:
    for name in kestrel_core.__all__:
        assert getattr(kestrel_core, name).__name__ == name
    assert set(kestrel_core.LATE) < set(kestrel_core.__all__)
    assert not hasattr(kestrel_core, "nothing_of_ours")


def test_importing_it_loads_neither_torch_nor_words_nor_pictures() -> None:
    code = (
        "import sys, kestrel_core; kestrel_core.KestrelError; "
        "print([name for name in ('torch', 'tokenizers', 'pyvips', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert done.stdout == "[]\n"
