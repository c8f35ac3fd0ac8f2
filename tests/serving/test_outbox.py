"""The outbox: what goes out together, in which order, and by how many hands."""

import json
import threading
import time
from collections.abc import Iterator

import pytest

from kestrel_core.protocol.errors import Cancelled, EngineFailed, KestrelError
from kestrel_core.protocol.messages import Chunk, EngineResult, Finished, Usage
from kestrel_core.triton.outbox import Outbox

USAGE = Usage(1, 2, 0, 0.0, 0.0, 0.0, 0.0)


def finished(text: str, rest: str = "", index: int = 9) -> Finished:
    return Finished(EngineResult("r", "stop", {"answer": text}, USAGE), Chunk(rest, index))


@pytest.fixture
def outbox() -> Iterator[Outbox]:
    made = Outbox(num_threads=3, pause_s=0.01)
    yield made
    made.close()


class Received:
    """A far side that notes what it is sent, and can be made to wait."""

    def __init__(self) -> None:
        self.documents: list[str | KestrelError] = []
        self.entered = threading.Event()
        self.ended = threading.Event()
        self.news = threading.Semaphore(0)
        self.gate = threading.Event()
        self.gate.set()
        self.inside = 0
        self.most_inside = 0

    def send(self, document: str | KestrelError, last: bool) -> None:
        self.inside += 1
        self.entered.set()
        self.most_inside = max(self.most_inside, self.inside)
        self.gate.wait(60)
        self.documents.append(document)
        self.inside -= 1
        self.news.release()
        if last:
            self.ended.set()

    def texts(self) -> list[str]:
        return [json.loads(document)["chunk"] for document in self.documents if isinstance(document, str)]


def test_what_waits_for_a_slow_far_side_goes_out_together(outbox: Outbox) -> None:
    far = Received()
    far.gate.clear()
    outgoing = outbox.open(far.send)
    outgoing.stream = True
    for index, letter in enumerate("abcdef", 1):
        outgoing.put(Chunk(letter, index))
    outgoing.put(finished("abcdefg!", "g!"))
    far.gate.set()
    assert far.ended.wait(60)
    assert "".join(far.texts()) == "abcdefg!" and len(far.documents) <= 3
    last = json.loads(str(far.documents[-1]))
    assert last["completed"] and last["answer"] == "abcdefg!"


def test_the_first_chunk_does_not_wait_for_the_pause() -> None:
    outbox, far = Outbox(pause_s=3600), Received()
    outgoing = outbox.open(far.send)
    outgoing.put(Chunk("a", 1))
    assert far.news.acquire(timeout=60)
    outgoing.put(Chunk("b", 2))
    outgoing.put(Chunk("c", 3))
    outgoing.put(Cancelled("enough"))
    assert far.ended.wait(60), "the last does not wait either"
    assert [str(document) for document in far.documents[1:]] == ["enough"]
    outbox.close()


def test_between_the_first_and_the_last_there_is_a_pause() -> None:
    pause_s, far, number = 0.05, Received(), 0
    outbox = Outbox(pause_s=pause_s)
    outgoing = outbox.open(far.send)
    outgoing.stream = True
    began = time.monotonic()
    while len(far.documents) < 4:
        outgoing.put(Chunk("x", number))
        number += 1
    outgoing.put(finished("x" * number))
    assert far.ended.wait(60)
    assert time.monotonic() - began > 2 * pause_s
    assert "".join(far.texts()) == "x" * number
    outbox.close()


def test_one_request_is_sent_by_one_thread_at_a_time_and_in_order(outbox: Outbox) -> None:
    fars = [Received() for _ in range(20)]
    outgoings = [outbox.open(far.send) for far in fars]
    for index in range(50):
        for outgoing in outgoings:
            outgoing.stream = True
            outgoing.put(Chunk(f"{index} ", index))
    for outgoing in outgoings:
        outgoing.put(finished("", "end"))
    for far in fars:
        assert far.ended.wait(60)
        assert "".join(far.texts()) == "".join(f"{i} " for i in range(50)) + "end"
        assert far.most_inside == 1


def test_an_answer_without_a_stream_is_one_document(outbox: Outbox) -> None:
    far = Received()
    outbox.open(far.send).put(finished("all", "all"))
    assert far.ended.wait(60)
    assert "chunk" not in json.loads(str(far.documents[0])) and len(far.documents) == 1


def test_an_error_stands_for_an_answer_that_json_cannot_hold(outbox: Outbox) -> None:
    far = Received()
    result = EngineResult("r", "stop", {"answer": float("nan")}, USAGE)
    outbox.open(far.send).put(Finished(result, Chunk("", 0)))
    assert far.ended.wait(60)
    assert str(far.documents[0]) == "the answer cannot be written as JSON (ValueError)"


def test_a_text_that_is_none_ends_its_own_answer_alone(caplog: pytest.LogCaptureFixture) -> None:
    outbox, far = Outbox(num_threads=1), Received()
    outgoing = outbox.open(far.send)
    outgoing.put(Chunk(5, 1))  # type: ignore[arg-type]
    outgoing.put(finished("ab", "b"))
    assert far.ended.wait(60)
    assert isinstance(far.documents[-1], EngineFailed) and "could not be written" in caplog.text
    other = Received()
    outbox.open(other.send).put(finished("all", "all"))
    assert other.ended.wait(60)
    outbox.close()


def test_an_answer_with_a_lost_part_ends_in_an_error(
    outbox: Outbox, caplog: pytest.LogCaptureFixture
) -> None:
    far = Received()
    lost = threading.Event()

    def send(document: str | KestrelError, last: bool) -> None:
        if not last:
            lost.set()
            raise OSError("no room")
        far.send(document, last)

    outgoing = outbox.open(send)
    outgoing.put(Chunk("a", 1))
    assert lost.wait(60)
    outgoing.put(finished("ab", "b"))
    assert far.ended.wait(60)
    assert "lost on its way" in str(far.documents[0])
    assert "could not be sent" in caplog.text


def test_an_end_that_comes_while_a_chunk_is_sent_goes_out_before_the_outbox_closes() -> None:
    outbox, far = Outbox(num_threads=1, pause_s=3600), Received()
    far.gate.clear()
    outgoing = outbox.open(far.send)
    outgoing.stream = True
    outgoing.put(Chunk("a", 1))
    assert far.entered.wait(60)
    outgoing.put(finished("ab", "b"))  # the only sender is busy with this very request
    closing = threading.Thread(target=outbox.close)
    closing.start()
    while outbox.ready.qsize() == 0:
        pass  # until the mark that ends the sender is in the queue
    far.gate.set()
    closing.join(60)
    assert not closing.is_alive()
    assert far.ended.is_set(), "the last response was left behind the mark"
    assert far.texts() == ["a", "b"]


def thought(text: str, index: int) -> Chunk:
    return Chunk(text, index, "reasoning")


def test_thoughts_and_text_never_share_a_response_and_keep_their_order(outbox: Outbox) -> None:
    far = Received()
    far.gate.clear()
    outgoing = outbox.open(far.send)
    outgoing.stream = True
    outgoing.put(thought("so ", 1))
    assert far.entered.wait(60)
    for piece in (thought("it ", 2), thought("is ", 3), Chunk("yes", 4), Chunk(", ", 5)):
        outgoing.put(piece)
    outgoing.put(Finished(finished("").result, Chunk("sir", 6)))
    far.gate.set()
    assert far.ended.wait(60)
    first, second, last = [json.loads(str(document)) for document in far.documents]
    assert (first["reasoning_chunk"], second["reasoning_chunk"]) == ("so ", "it is ")
    assert (second["token_index"], last["chunk"]) == (3, "yes, sir")


def test_chunks_that_go_out_together_join_their_log_probabilities(outbox: Outbox) -> None:
    far = Received()
    far.gate.clear()
    outgoing = outbox.open(far.send)
    outgoing.stream = True
    a, b, c, d = ({"token": letter} for letter in "abcd")
    outgoing.put(Chunk("a", 1, "text", (a,)))
    assert far.entered.wait(60)
    outgoing.put(Chunk("b", 2, "text", (b,)))
    outgoing.put(Chunk("c", 3, "text", (c,)))
    outgoing.put(Finished(finished("abcd").result, Chunk("d", 4, "text", (d,))))
    far.gate.set()
    assert far.ended.wait(60)
    first, last = [json.loads(str(document)) for document in far.documents]
    assert first["logprobs"] == [a] and last["chunk_logprobs"] == [b, c, d]


def test_an_answer_that_ends_in_thought_sends_the_thought_before_its_end(outbox: Outbox) -> None:
    far = Received()
    far.gate.clear()
    outgoing = outbox.open(far.send)
    outgoing.stream = True
    for event in (thought("hm", 1), Finished(finished("").result, Chunk("", 1))):
        outgoing.put(event)
    far.gate.set()
    assert far.ended.wait(60)
    thinking, last = [json.loads(str(document)) for document in far.documents]
    assert (thinking["reasoning_chunk"], last["chunk"], last["completed"]) == ("hm", "", True)


def test_an_end_is_sent_although_a_chunk_before_it_in_the_same_batch_is_lost(
    outbox: Outbox, caplog: pytest.LogCaptureFixture
) -> None:
    far, gate = Received(), threading.Event()

    def send(document: str | KestrelError, last: bool) -> None:
        gate.wait(60)
        if not last:
            raise OSError("no room")
        far.send(document, last)

    outgoing = outbox.open(send)
    outgoing.stream = True
    for event in (Chunk("a", 1), thought("b", 2), finished("ab", "c")):
        outgoing.put(event)
    gate.set()
    assert far.ended.wait(60)
    assert "lost on its way" in str(far.documents[0])
