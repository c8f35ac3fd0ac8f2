"""What the client sends is what the server's own reader makes of it."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from client.fake_triton import Asked
from PIL import Image

from kestrel_client import BadImage, InvalidRequest
from kestrel_client.pictures import encoded
from kestrel_client.tensors import to_message
from kestrel_core.intake.image_limits import ImageLimits
from kestrel_core.intake.images import decode_image
from kestrel_core.protocol import wire
from kestrel_core.protocol.asking import QUERY, make_call, make_request
from kestrel_core.protocol.messages import Request


def send(
    skill: str, image: Any, arguments: dict[str, Any], options: dict[str, Any], stream: bool = False
) -> Asked:
    return Asked(to_message(make_call(skill, image, arguments, options, stream, QUERY)))


def read(asked: Asked) -> Request:
    parameters = {"spatial_refs": asked.spatial_refs} if asked.spatial_refs else {}
    return wire.decode_request(asked.inputs, asked.id, asked.timeout_us, parameters)


def test_every_keyword_arrives() -> None:
    options: dict[str, Any] = {
        "temperature": 0.25,
        "top_p": 0.5,
        "max_tokens": 2**31 - 1,
        "top_k": 40,
        "adapter": "birds@100",
        "seed": -(2**63),
        "stop": ["\n", "ende.\u00e9"],
        "logprobs": 5,
        "priority": -3,
        "request_id": "r-7",
    }
    arguments = {"question": "wie viele \u00c4pfel?", "reasoning": True}
    asked = send("query", b"\x89PNG...", arguments, options, stream=True)
    request = read(asked)
    assert (asked.model, request.skill, request.image) == ("moondream", "query", b"\x89PNG...")
    assert (request.request_id, request.stream, request.priority) == ("r-7", True, -3)
    assert request.arguments == {"question": "wie viele \u00c4pfel?", "reasoning": True}
    assert (request.settings.temperature, request.settings.top_p) == (0.25, 0.5)
    assert (request.settings.max_tokens, request.settings.seed) == (2**31 - 1, -(2**63))
    assert (request.settings.adapter, request.settings.logprobs) == ("birds@100", 5)
    assert request.settings.stop == ("\n", "ende.\u00e9")
    assert asked.shapes.pop("STOP") == [2]
    assert set(map(tuple, asked.shapes.values())) == {(1,)}


def test_the_types_are_those_of_the_contract() -> None:
    options = {"temperature": 1, "max_tokens": 5, "seed": 1, "logprobs": 1, "priority": 1}
    asked = send("caption", b"x", {"length": "short"}, options, stream=True)
    assert asked.datatypes == {
        "SKILL": "BYTES",
        "LENGTH": "BYTES",
        "IMAGE": "BYTES",
        "STREAM": "BOOL",
        "PRIORITY": "INT32",
        "TEMPERATURE": "FP32",
        "MAX_TOKENS": "INT32",
        "SEED": "INT64",
        "LOGPROBS": "INT32",
    }


def test_what_is_not_given_is_not_sent() -> None:
    options = {"temperature": None, "stop": None, "timeout_s": None, "request_id": None}
    asked = send("query", None, {"question": "why?", "reasoning": None}, options)
    assert set(asked.inputs) == {"SKILL", "QUESTION"}
    assert (asked.timeout_us, asked.spatial_refs, asked.id) == (0, "", "")


def test_points_and_boxes_can_be_mixed_in_spatial_refs() -> None:
    refs = [(0.1, 0.2), (0.1, 0.2, 0.5, 0.6)]
    asked = send("point", b"\x89PNG", {"object": "it", "spatial_refs": refs}, {})
    assert read(asked).arguments["spatial_refs"] == [[0.1, 0.2], [0.1, 0.2, 0.5, 0.6]]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"max_tokens": 2**31}, "MAX_TOKENS is 2147483648; it can be from 1"),
        ({"temperature": "hot"}, "TEMPERATURE is 'hot'"),
        ({"priority": 2**31}, "PRIORITY is 2147483648"),
        ({"timeout_s": 0.0}, "timeout_s is 0.0; it must be a number of seconds"),
        ({"temprature": 1.0}, "query takes no temprature; did you mean temperature"),
        ({"max_new_tokens": 1}, "max_new_tokens is called max_tokens now"),
    ],
)
def test_a_wrong_keyword_is_refused_before_it_is_sent(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidRequest, match=complaint):
        send("query", None, {"question": "why?"}, options)


def test_text_that_is_none_is_refused_before_it_is_sent() -> None:
    with pytest.raises(InvalidRequest, match="QUESTION is 3; it must be a string"):
        send("query", None, {"question": 3}, {})
    with pytest.raises(InvalidRequest, match="SPATIAL_REFS must be rows"):
        send("query", None, {"question": "why?", "spatial_refs": [0.1, 0.2]}, {})
    with pytest.raises(InvalidRequest, match="SPATIAL_REFS must be rows"):
        send("query", None, {"question": "why?", "spatial_refs": [["left", "right"]]}, {})
    with pytest.raises(InvalidRequest, match="SPATIAL_REFS must be rows"):
        send("query", None, {"question": "why?", "spatial_refs": [[True, 0.5]]}, {})
    with pytest.raises(InvalidRequest, match="REASONING is 'no'; it must be true or false"):
        send("query", None, {"question": "why?", "reasoning": "no"}, {})
    for arguments in ({"question": "\ud800"}, {"question": "why?", "mine": "\ud800"}):
        with pytest.raises(InvalidRequest, match="is not UTF-8 text"):
            to_message(make_request("query", None, arguments))
    with pytest.raises(InvalidRequest, match="settings are a str"):
        send("query", None, {"question": "why?"}, {"settings": "cold"})


def test_a_picture_is_bytes_a_path_or_a_pil_image(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (9, 14, 3), dtype=np.uint8)
    path = tmp_path / "picture.png"
    Image.fromarray(pixels).save(path)
    for picture in (path.read_bytes(), path, str(path), Image.fromarray(pixels)):
        assert (decode_image(encoded(picture), ImageLimits()) == pixels).all()


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "CMYK", "1", "I;16"])
def test_a_pil_image_of_any_mode_arrives_as_the_engine_would_take_it(mode: str) -> None:
    grey = np.random.default_rng(1).integers(0, 256, (8, 6), dtype=np.uint8)
    picture = (
        Image.fromarray(grey.astype(np.uint16) * 257)
        if mode == "I;16"
        else Image.fromarray(grey).convert(mode)
    )
    sent = decode_image(encoded(picture), ImageLimits())
    assert (sent == decode_image(picture, ImageLimits())).all()


def test_a_turned_pil_image_is_sent_upright() -> None:
    picture, file = Image.new("RGB", (40, 20), "red"), io.BytesIO()
    exif = picture.getexif()
    exif[0x0112] = 6
    picture.save(file, "JPEG", exif=exif)
    assert decode_image(encoded(Image.open(file)), ImageLimits()).shape == (40, 20, 3)


def test_a_picture_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadImage, match=r"nowhere\.jpg' cannot be read \(No such file"):
        encoded(tmp_path / "nowhere.jpg")
    with pytest.raises(BadImage, match="not dict"):
        encoded({})  # type: ignore[arg-type]
