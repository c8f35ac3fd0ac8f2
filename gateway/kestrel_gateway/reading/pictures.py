"""The picture of a request, as a file's bytes: from a data URL, base64 text, a form's file, or an address."""

import asyncio
import binascii
import re
from typing import Any

from kestrel_core.protocol.errors import BadImage, TooLarge
from kestrel_gateway.options import GatewayOptions
from kestrel_gateway.reading.fetching import Fetcher

DATA_URL = re.compile(r"data:[\w.+-]*/?[\w.+-]*(;[\w=.+-]+)*;base64,", re.IGNORECASE)
HOW = "send a data URL (data:image/jpeg;base64,...) or base64 of the file"
NOT_FETCHED = "pictures are not fetched from other hosts here"
SPACES = str.maketrans("", "", " \t\r\n")
SLICE = 4 * 2**20  # letters that are decoded before others get their turn; four of them are three bytes


class Pictures:
    def __init__(self, options: GatewayOptions) -> None:
        self._max_bytes = options.max_image_bytes
        self._fetcher = Fetcher(options) if options.image_hosts else None

    async def read(self, value: Any) -> bytes:
        if not isinstance(value, bytes | str):
            raise BadImage(f"the picture is a {type(value).__name__}; {HOW}")
        if isinstance(value, str) and is_address(value):
            if self._fetcher is None:
                raise BadImage(f"the picture is an address, and {NOT_FETCHED}; {HOW}")
            return await self._fetcher.fetch(value)
        data = value if isinstance(value, bytes) else await self._decode(value)
        self._check_size(len(data))
        if not data:
            raise BadImage(f"the picture is empty; {HOW}")
        return data

    async def _decode(self, value: str) -> bytes:
        """Strictly: letters that are no base64 are refused, but for spaces and ends of lines."""
        text = value
        if value[:5].lower() == "data:":
            head = DATA_URL.match(value[:200])
            if head is None:
                raise BadImage(f"the picture's data URL is not of the form data:image/...;base64,...; {HOW}")
            text = value[head.end() :]
        if any(space in text for space in " \t\r\n"):
            text = text.translate(SPACES)
        self._check_size(len(text) // 4 * 3 - text[-2:].count("="))
        try:
            parts = [binascii.a2b_base64(text[:SLICE], strict_mode=True)]
            for start in range(SLICE, len(text), SLICE):
                await asyncio.sleep(0)
                parts.append(binascii.a2b_base64(text[start : start + SLICE], strict_mode=True))
        except (binascii.Error, ValueError):
            raise BadImage(f"the picture is not valid base64; {HOW}") from None
        return b"".join(parts)

    def _check_size(self, count: int) -> None:
        if count > self._max_bytes:
            raise TooLarge(
                f"the picture has {count:,} bytes and the limit is {self._max_bytes:,}; send a smaller file"
            )


def is_address(value: object) -> bool:
    return isinstance(value, str) and value[:8].lower().startswith(("http://", "https://"))
