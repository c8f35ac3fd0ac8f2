#!/usr/bin/env bash
# Flags go to `kestrel serve`; anything else is a command to run in its place: kestrel schedule "...", bash
set -euo pipefail

if [[ $# -eq 0 || $1 == -* ]]; then
    set -- kestrel serve "$@"
fi
exec "$@" # not a child: the container's SIGTERM has to reach the supervisor, which drains
