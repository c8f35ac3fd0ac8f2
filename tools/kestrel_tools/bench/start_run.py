"""One start, in a process of its own: `python -m kestrel_tools.bench.start_run`, with a `Task` on stdin.

Prints one JSON line: seconds by part, when the first answer came, what was left for later, and answers to be
compared with another start's. Nothing that takes long is imported before the clock was read.
"""

import json
import sys
import time

BEGAN_S = time.monotonic()
WAIT_S = 120.0  # for an answer, and for what is captured later


def main() -> None:
    task = json.loads(sys.stdin.read())
    import kestrel_core.build  # what takes long comes with it
    from kestrel_tools.bench.start_engine import observed

    imported_s = time.monotonic()
    assert kestrel_core.build
    parts = {"interpreter": BEGAN_S - task["began_s"], "imports": imported_s - BEGAN_S}
    print(json.dumps(observed(task, parts)), flush=True)


if __name__ == "__main__":
    main()
