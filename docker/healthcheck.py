#!/usr/bin/env python3
"""Exit 0 when the server answers, 1 when it does not: the container's health check and the pod's probes.

It asks the gateway, whose readiness is a real answer of the model. Where there is no gateway (`--port 0`),
--triton asks Triton. Triton's own health stays green when the process behind the model has died, so the model
itself is asked: by default with a request that it refuses at once, which costs no GPU time, and which an
overloaded server, slow but alive, passes. With --compute it is one token: for the start, before a server is
given traffic.
"""

import argparse
import json
import os
import sys
from http.client import HTTPConnection, HTTPException

REFUSED = {"SKILL": "health"}  # no such skill
ONE_TOKEN = {"SKILL": "query", "QUESTION": "?", "MAX_TOKENS": 1}
SECRET_HEADER, SECRET_VARIABLE = "kestrel-secret", "KESTREL_UPSTREAM_SECRET"


def why_gateway_unhealthy(server: HTTPConnection) -> str | None:
    """None if it is well."""
    server.request("GET", "/readyz")
    ready = server.getresponse()
    text = ready.read().decode(errors="replace")
    return None if ready.status == 200 else f"the gateway is not ready: HTTP {ready.status} {text}"


def why_triton_unhealthy(server: HTTPConnection, compute: bool) -> str | None:
    server.request("GET", "/v2/models/moondream/ready")
    ready = server.getresponse()
    ready.read()
    if ready.status != 200:
        return f"the model is not ready: HTTP {ready.status}"
    question = json.dumps(ONE_TOKEN if compute else REFUSED)
    secret = os.environ.get(SECRET_VARIABLE)
    headers = {SECRET_HEADER: secret} if secret else {}
    server.request("POST", "/v2/models/moondream/generate", question, headers)
    answer = json.loads(server.getresponse().read())
    # The model's refusals begin with their code; those of Triton ("Stub process ... is not healthy") do not.
    well = "TEXT_OUTPUT" in answer if compute else answer.get("error", "").startswith("INVALID_ARG: ")
    return None if well else f"not what the model answers: {answer}"


def why_unhealthy(options: argparse.Namespace) -> str | None:
    # Not urllib, which would ask a proxy for localhost.
    server = HTTPConnection(options.triton or options.gateway, timeout=options.timeout_s)
    try:
        if options.triton:
            return why_triton_unhealthy(server, options.compute)
        return why_gateway_unhealthy(server)
    except (OSError, HTTPException, ValueError) as error:
        return f"no answer: {error!r}"
    finally:
        server.close()


def main() -> int:
    parser = argparse.ArgumentParser(description="Exit 0 when the server answers, 1 when it does not.")
    parser.add_argument("--gateway", default="localhost:8080", help="its address (default: %(default)s)")
    parser.add_argument("--triton", metavar="ADDRESS", help="ask Triton's HTTP there, and no gateway")
    parser.add_argument("--compute", action="store_true", help="ask Triton for a token, not for a refusal")
    parser.add_argument(
        "--timeout-s", type=float, default=4.0, help="of each request, of which Triton gets two (%(default)s)"
    )
    reason = why_unhealthy(parser.parse_args())
    if reason is not None:
        print(" ".join(reason.split()), file=sys.stderr)
    return 0 if reason is None else 1


if __name__ == "__main__":
    sys.exit(main())
