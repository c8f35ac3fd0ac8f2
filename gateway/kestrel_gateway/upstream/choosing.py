"""Which replica is asked: the one that has seen the picture, unless it has too much to do already.

Rendezvous hashing: every replica draws a number from the picture's digest and its own name, and the highest
wins. A picture so finds the replica whose caches hold it, and if one goes, only its pictures move. No replica
takes more than its share by a quarter and one; what is over goes to the picture's next one.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

from kestrel_gateway.upstream.replica import Replica

MAX_SHARE = 1.25  # of the average


def digest_of(image: Any) -> bytes | None:
    return hashlib.blake2b(image, digest_size=16).digest() if isinstance(image, bytes) else None


def choose(pool: Sequence[Replica], digest: bytes | None) -> Replica:
    """Without a picture: who has the least to do, and of those who was asked least often."""
    if len(pool) == 1:
        return pool[0]
    if digest is None:
        return min(pool, key=lambda replica: (replica.num_open, replica.num_asked))
    limit = MAX_SHARE * sum(replica.num_open for replica in pool) / len(pool) + 1
    with_room = [replica for replica in pool if replica.num_open < limit]  # whoever is below average has room
    return max(with_room, key=lambda replica: weight(digest, replica.name))


def weight(digest: bytes, name: str) -> bytes:
    return hashlib.blake2b(name.encode(), key=digest, digest_size=8).digest()
