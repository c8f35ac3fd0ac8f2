"""Which of Triton's APIs are closed, and to whom.

Its administration is closed to everybody: through it, log files are chosen, models are unloaded, and shared
memory with other people's pictures is read. Inference is open unless there is a secret; then only those who
send it are answered, which is the gateway. Health and the model's description stay open.

Triton takes such values on its command line only, where every user of the machine can read them with `ps`. So
the administration's value is one that no header can carry, and reading it helps nobody. The secret of
inference has to be carried: a machine with users who are not trusted needs /proc mounted with `hidepid`.
"""

import re
import secrets

from kestrel_core.protocol.errors import InvalidRequest

ADMINISTRATION = ("model-repository", "shared-memory", "trace", "logging", "statistics")
HTTP_HEADER = "kestrel-secret"
GRPC_HEADER = f"triton-grpc-protocol-{HTTP_HEADER}"  # Triton adds the first part
SECRET_VARIABLE = "KESTREL_UPSTREAM_SECRET"
SECRET = re.compile(r"[A-Za-z0-9_-]{16,}")


def inference_secret(given: str | None, is_gateways_alone: bool) -> str | None:
    """The one that was given; a new one if Triton's own ports must not be a way around the gateway."""
    if given:
        if not SECRET.fullmatch(given):
            raise InvalidRequest(
                f"{SECRET_VARIABLE} cannot be used: a secret is 16 or more letters, digits, '-' and '_', "
                "as `openssl rand -hex 32` writes one"
            )
        return given
    return secrets.token_urlsafe(32) if is_gateways_alone else None


def restriction_flags(secret: str | None) -> list[str]:
    rules = [f"{','.join(ADMINISTRATION)}:admin={_unsendable()}"]
    if secret is not None:
        rules.append(f"inference:{HTTP_HEADER}={secret}")
    flags = ("--http-restricted-api", "--grpc-restricted-protocol")
    return [f"{flag}={rule}" for flag in flags for rule in rules]


def _unsendable() -> str:
    """HTTP ends a header at the line break, and gRPC refuses it."""
    return f"{secrets.token_urlsafe(16)}\n{secrets.token_urlsafe(16)}"
