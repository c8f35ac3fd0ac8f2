"""The picture of a request: where it may stand in a body, and how it becomes bytes."""

import binascii
import re
from typing import Any

from kestrel_core.protocol.errors import BadImage

DATA_URL = re.compile(r"data:[\w.+-]*/?[\w.+-]*(;[\w=.+-]+)*;base64,", re.IGNORECASE)
HOW = "send a data URL (data:image/jpeg;base64,...) or base64 of the file"
NOT_FETCHED = "pictures are not fetched from other hosts here"


def decode_picture(value: Any) -> bytes:
    """From a data URL or base64 text; bytes are a file of a form already."""
    if isinstance(value, bytes):
        if not value:
            raise BadImage("the picture is empty; send the bytes of its file")
        return value
    if not isinstance(value, str):
        raise BadImage(f"the picture is a {type(value).__name__}; {HOW}")
    if is_address(value):
        raise BadImage(f"the picture is an address, and {NOT_FETCHED}; {HOW}")
    text = value
    if value[:5].lower() == "data:":
        head = DATA_URL.match(value[:200])
        if head is None:
            raise BadImage(f"the picture's data URL is not of the form data:image/...;base64,...; {HOW}")
        text = value[head.end() :]
    try:
        data = binascii.a2b_base64(text)
    except (binascii.Error, ValueError):
        raise BadImage(f"the picture is not valid base64; {HOW}") from None
    if not data:
        raise BadImage(f"the picture is empty; {HOW}")
    return data


def is_address(value: object) -> bool:
    return isinstance(value, str) and value[:8].lower().startswith(("http://", "https://"))
