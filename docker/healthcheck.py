#!/usr/bin/env python3
"""Exit 0 when the server answers, 1 when it does not: the container's health check and the pod's probes.

Triton's own health stays green when the process behind the model has died, so this asks the model itself. By
default with a request that the model refuses at once: that costs no GPU time, and an overloaded server, slow
but alive, passes. With --compute it asks for one token: for the start, before a server is given traffic.
"""

import argparse
import json
import sys
from http.client import HTTPConnection, HTTPException

REFUSED = {"SKILL": "health"}  # no such skill
ONE_TOKEN = {"SKILL": "query", "QUESTION": "?", "MAX_TOKENS": 1}


def why_unhealthy(address: str, compute: bool, timeout_s: float) -> str | None:
    """None if the server is well."""
    server = HTTPConnection(address, timeout=timeout_s)  # not urllib, which would ask a proxy for localhost
    try:
        server.request("GET", "/v2/models/moondream/ready")
        ready = server.getresponse()
        ready.read()
        if ready.status != 200:
            return f"the model is not ready: HTTP {ready.status}"
        question = json.dumps(ONE_TOKEN if compute else REFUSED)
        server.request("POST", "/v2/models/moondream/generate", question)
        answer = json.loads(server.getresponse().read())
    except (OSError, HTTPException, ValueError) as error:
        return f"no answer: {error!r}"
    finally:
        server.close()
    # The model's refusals begin with their code; those of Triton ("Stub process ... is not healthy") do not.
    well = "TEXT_OUTPUT" in answer if compute else answer.get("error", "").startswith("INVALID_ARG: ")
    return None if well else f"not what the model answers: {answer}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Exit 0 when the server answers, 1 when it does not.")
    parser.add_argument("--address", default="localhost:8000", help="of HTTP (default: %(default)s)")
    parser.add_argument("--compute", action="store_true", help="ask for one token, not for a refusal")
    parser.add_argument(
        "--timeout-s", type=float, default=4.0, help="of each of the two requests (default: %(default)s)"
    )
    options = parser.parse_args()
    reason = why_unhealthy(options.address, options.compute, options.timeout_s)
    if reason is not None:
        print(reason, file=sys.stderr)
    return 0 if reason is None else 1


if __name__ == "__main__":
    sys.exit(main())
