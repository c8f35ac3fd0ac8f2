#!/usr/bin/env python3
"""Ask a running server every skill once: `python client/run.py --url localhost:8001 --image photo.jpg`.

Works from a checkout with nothing but tritonclient[grpc] installed; `python -m kestrel_client` is the same.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]  # kestrel_client, and kestrel_core, whose wire format it shares

from kestrel_client.command import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
