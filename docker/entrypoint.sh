#!/usr/bin/env bash
# Flags go to `kestrel serve`, which starts Triton and the gateway; anything else is a command to run in its place:
# kestrel gateway --host 0.0.0.0 --upstream server:8001, kestrel schedule "...", bash
# On 0.0.0.0, since a container's own 127.0.0.1 cannot be reached from outside: so the gateway answers at all ports (8080,
# 8000, 8001), and Triton stays behind it. A --host among the flags comes later and wins.
set -euo pipefail

if [[ $# -eq 0 || $1 == -* ]]; then
    set -- kestrel serve --host 0.0.0.0 "$@"
fi
exec "$@" # not a child: the container's SIGTERM has to reach the supervisor, which drains
