"""How a server of ours on this machine is asked how it is."""

from collections.abc import Mapping
from http.client import HTTPException
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, Request, build_opener


def address(host: str, port: int) -> str:
    """Where to ask a server that listens on `host`, for a URL."""
    asked = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"[{asked}]:{port}" if ":" in asked else f"{asked}:{port}"


def fetch(url: str) -> str | None:
    """What it says, if it says yes."""
    status, text = ask(url)
    return text if status == 200 else None


def ask(
    url: str, data: bytes | None = None, headers: Mapping[str, str] | None = None, timeout_s: float = 5.0
) -> tuple[int, str]:
    """Status and text. Status 0: nobody answers there; -1: nobody listens there."""
    try:  # without a proxy, which knows nothing of our own machine
        request = Request(url, data, dict(headers or {}))
        with build_opener(ProxyHandler({})).open(request, timeout=timeout_s) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        error.close()
        return error.code, ""
    except URLError as error:
        return (-1 if isinstance(error.reason, ConnectionRefusedError) else 0), ""
    except (OSError, HTTPException, ValueError):  # too late, cut off, or another program's port
        return 0, ""
