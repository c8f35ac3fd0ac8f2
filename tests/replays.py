"""In place of CUDA graphs, for tests of the CUDA runtime on a CPU."""

from kestrel_core.runtime.graphs import Work


class Replays:
    """In place of CUDA graphs: work is called again, on what the captured tensors hold by then."""

    def __init__(self, lazy: bool = False) -> None:
        self.lazy = lazy
        self.num_captured = self.num_replayed = 0

    def refuse_if_required(self, error: Exception) -> None:
        """They are not."""

    def capture(self, work: Work) -> Work:
        work()
        self.num_captured += 1

        def replay() -> None:
            self.num_replayed += 1
            work()

        return replay
