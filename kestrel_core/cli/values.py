"""What the text of an option may be: each takes it and gives the value, or says what it would have to be.

They are for `type=` of argparse, which tells the option's name itself.
"""

import argparse
import re

MOST_S = 3600
_LABEL = "[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?"
IMAGE_HOST = re.compile(rf"(\*\.)?{_LABEL}(\.{_LABEL})*\.?(:\d{{1,5}})?", re.ASCII | re.IGNORECASE)


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


def image_hosts(text: str) -> str:
    """By comma, as it is given. The gateway compares them with hosts of addresses, which are such names."""
    for host in filter(None, map(str.strip, text.split(","))):
        if not IMAGE_HOST.fullmatch(host):
            raise argparse.ArgumentTypeError(
                f"{host!r} is no host; write img.example.com, *.example.com for every host below that one, "
                "or img.example.com:8443 for another port than 80 and 443"
            )
    return text
