"""Costly pictures wait for each other, never in the way of cheap ones, and not for ever."""

import threading
from collections.abc import Callable

from fake_preparation import fake_prepare
from fakes import FakeEngine

from kestrel_core.loop.step import PreparedImage
from kestrel_core.protocol.messages import Finished


class Gate:
    """Pictures called costly are decoded once it is opened, each as dear as its name is long."""

    def __init__(self) -> None:
        self.decoded: list[str] = []
        self.num_decoding = self.most_decoding = 0
        self.begun, self.opened = threading.Event(), threading.Event()
        self._lock = threading.Lock()

    def __call__(
        self, source: object, may_decode: Callable[[str, int], bool], salt: str
    ) -> PreparedImage | None:
        image = fake_prepare(source, may_decode, salt)
        if image is None or "costly" not in image.key:
            return image
        with self._lock:
            self.num_decoding += 1
            self.most_decoding = max(self.most_decoding, self.num_decoding)
        self.begun.set()
        assert self.opened.wait(60)
        with self._lock:
            self.num_decoding -= 1
            self.decoded.append(image.key)
        return image


def test_a_cheap_picture_is_answered_while_costly_ones_would_keep_all_workers() -> None:
    gate = Gate()
    engine = FakeEngine(threads=True, prepare_image=gate)
    costly = [engine.ask("caption", f"costly {number}".encode()) for number in range(16)]
    cheap = engine.ask("caption", b"cheap")
    assert cheap.ended.wait(60) and isinstance(cheap.end, Finished)
    assert not gate.decoded, "it waited for none of them"
    gate.opened.set()
    assert all(one.ended.wait(60) for one in costly)
    assert gate.most_decoding == 1, "of two workers, one is left for others"
    engine.loop.close()
    engine.check_idle()


def test_of_those_that_wait_the_cheapest_is_next_unless_another_waits_much_longer() -> None:
    gate = Gate()
    engine = FakeEngine(threads=True, prepare_image=gate)
    heard = [engine.ask("caption", b"costly, the first")]
    assert gate.begun.wait(60)
    heard.append(engine.ask("caption", b"costly, and " + b"x" * 50))
    engine.clock.now_s += 3.0  # 50 letters are 50 million pixels, or five seconds of waiting
    heard += [engine.ask("caption", b"costly, and " + b"y" * 30), engine.ask("caption", b"costly, z")]
    cheap = engine.ask("caption", b"cheap")  # the workers take it after all of these
    assert cheap.ended.wait(60)
    gate.opened.set()
    assert all(one.ended.wait(60) for one in heard)
    assert [name[-1] for name in gate.decoded] == ["t", "z", "x", "y"]
    engine.loop.close()
    engine.check_idle()


def test_who_goes_while_its_picture_waits_takes_nobody_s_turn() -> None:
    gate = Gate()
    engine = FakeEngine(threads=True, prepare_image=gate)
    heard = [engine.ask("caption", f"costly {number}".encode()) for number in range(4)]
    cheap = engine.ask("caption", b"cheap")
    assert cheap.ended.wait(60)
    for gone in heard[1:3]:
        engine.cancel(gone)
        assert gone.ended.wait(60)
    gate.opened.set()
    assert all(one.ended.wait(60) for one in heard)
    assert gate.decoded == ["costly 0", "costly 3"]
    engine.loop.close()
    engine.check_idle()
