"""`python -m kestrel_gateway`: the gateway alone, as `kestrel serve` starts it."""

import sys

from kestrel_core.cli.main import main
from kestrel_gateway.command import add

if __name__ == "__main__":
    sys.exit(main(["gateway", *sys.argv[1:]], more=(add,)))
