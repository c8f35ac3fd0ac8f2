"""What the text of an option may be: each takes it and gives the value, or says what it would have to be.

They are for `type=` of argparse, which tells the option's name itself.
"""

import argparse

MOST_S = 3600


def count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of processes, from 1 on")
    return int(text)


def seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= MOST_S:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time in seconds, from 0 to {MOST_S}")
    return found


def whole_seconds(text: str) -> int:
    """At least one: after none at all even a server that has nothing to finish would count as cut off."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MOST_S:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time in whole seconds, from 1 to {MOST_S}")
    return int(text)
