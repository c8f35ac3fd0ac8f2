"""What is built upon the clients: LangChain, LlamaIndex, LiteLLM, supervision."""

from typing import Any

import pytest
from other_clients import SAMPLE, Drive, are_pieces_of

pytestmark = [pytest.mark.ecosystem, pytest.mark.triton]


def check_chat(told: Any, truth: dict[str, Any]) -> None:
    assert told["answer"] == truth["answer"] == "5"
    assert are_pieces_of(truth["description"], told["pieces"])
    for usage in (told["usage"], told.get("stream_usage", told["usage"])):
        assert usage["input_tokens"] > 196  # the picture's positions
        assert usage["output_tokens"] > 0
        assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]


def test_langchain_chats_about_a_picture(drive: Drive, address: str, truth: dict[str, Any]) -> None:
    told = drive("clients", "langchain_chat.py", address, SAMPLE)
    check_chat(told["chat"], truth)
    check_chat(told["responses"], truth)
    assert told["chat"]["stream_usage"]["output_tokens"] > told["chat"]["usage"]["output_tokens"]


def test_llamaindex_chats_about_a_picture(drive: Drive, address: str, truth: dict[str, Any]) -> None:
    check_chat(drive("frameworks", "llamaindex_chat.py", address, SAMPLE), truth)


def test_litellm_completes_about_a_picture(drive: Drive, address: str, truth: dict[str, Any]) -> None:
    told = drive("frameworks", "litellm_chat.py", address, SAMPLE)
    check_chat(told, truth)
    assert told["refusal"] == 404


def test_supervision_reads_the_boxes(drive: Drive, address: str, truth: dict[str, Any]) -> None:
    told = drive("clients", "supervision_boxes.py", address, SAMPLE)
    width, height = told["size"]
    expected = [
        [box["x_min"] * width, box["y_min"] * height, box["x_max"] * width, box["y_max"] * height]
        for box in truth["objects"]
    ]
    assert told["found"] == [pytest.approx(box, abs=0.02 * max(width, height)) for box in expected]
    assert told["nothing"] == []
