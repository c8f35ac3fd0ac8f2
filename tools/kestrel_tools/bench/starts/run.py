"""One start, in a process of its own: `python -m kestrel_tools.bench.starts.run`, with a `Task` on stdin.

Prints one JSON line: seconds by part, when the first answer came, what was left for later, and answers to be
compared with another start's. Nothing that takes long is imported before the clock was read.
"""

import gc
import json
import sys
import time

BEGAN_S = time.monotonic()


def main() -> None:
    task = json.loads(sys.stdin.read())
    gc.disable()  # as where the engine serves
    from kestrel_tools.bench.starts.engine import observed, save  # torch, and all of the engine, come with it

    gc.freeze()
    gc.enable()
    imported_s = time.monotonic()
    if "save" in task:
        return save(task)
    parts = {"interpreter": BEGAN_S - task["began_s"], "imports": imported_s - BEGAN_S}
    print(json.dumps(observed(task, parts)), flush=True)


if __name__ == "__main__":
    main()
