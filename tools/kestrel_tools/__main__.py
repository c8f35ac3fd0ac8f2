"""`python -m kestrel_tools bench ...`: the command line of a checkout that is not installed."""

import sys

from kestrel_tools.commands import main

if __name__ == "__main__":
    sys.exit(main())
