"""Who may ask, and how much. Without a file of keys everybody may, and a caller is an address.

A caller is asked for its key before anything of its body is read, and counted then; what its key may ask is
checked once the request is known. A key itself is never logged, echoed or kept, only the name of it.
"""

import hmac
import logging
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from limits import RateLimitItemPerMinute
from limits.strategies import MovingWindowRateLimiter
from starlette.datastructures import Headers

from kestrel_core.protocol.errors import KestrelError
from kestrel_core.protocol.messages import Request
from kestrel_core.protocol.names import shown
from kestrel_gateway.admission.allowance import Allowance
from kestrel_gateway.admission.key_file import USUAL_PRIORITY, Key, digest_of, read_keys
from kestrel_gateway.admission.tallies import Tallies
from kestrel_gateway.errors import Busy, Forbidden, RateLimited, TooManyAtOnce, Unauthorized
from kestrel_gateway.records.visits import MODEL_READY

log = logging.getLogger("kestrel.gateway")

GUARDED = ("/v1/", "/v2/", "/inference.GRPCInferenceService/")
OPEN = ("/v1/health/", "/v2/health/")
HOW = 'send it as "Authorization: Bearer KEY" or "X-Moondream-Auth: KEY"'


class Keys:
    def __init__(self, path: Path | None, tallies: Tallies, allowance: Allowance) -> None:
        """`allowance`: of each caller, in this process."""
        self._path = path
        self._allowance = allowance
        self._keys = read_keys(path) if path else ()
        self._tallies = tallies
        self._windows = MovingWindowRateLimiter(tallies)

    @property
    def are_asked_for(self) -> bool:
        return self._path is not None

    def reread(self) -> None:
        """At SIGHUP. A file that cannot be used changes nothing."""
        if self._path is None:
            return
        try:
            self._keys = read_keys(self._path)
        except KestrelError as error:
            log.error("the keys stay as they were: %s", error)
        else:
            log.info("%d keys were read again", len(self._keys))

    def check(self, path: str, headers: Headers) -> str:
        """The name of a key that is known; empty where none is needed. Nothing is counted."""
        return self._identified(headers).name if self._path is not None and is_guarded(path) else ""

    @contextmanager
    def admission(self, path: str, headers: Headers, address: str = "") -> Iterator[str]:
        """Lets a request in for as long as it takes. Gives its key's name; empty where no key is needed."""
        if not is_guarded(path):
            yield ""
        elif self._path is None:
            with self._allowance.place(address, "your address"):
                yield ""
        else:
            key = self._identified(headers)
            self._check_rate(key)
            with self._allowance.place(key.name, f"key {key.name}"), self._tallied(key):
                yield key.name

    def refusal_again(self, path: str, headers: Headers, address: str) -> KestrelError | None:
        """Of somebody who was refused just now, and would be again. It costs nothing while nobody is."""
        if not self._allowance.refuses_somebody or not is_guarded(path):
            return None
        if self._path is None:
            return self._allowance.refusal_again(address, "your address")
        with suppress(Unauthorized):  # that is told later, with everything else about it
            name = self._identified(headers).name
            return self._allowance.refusal_again(name, f"key {name}")
        return None

    @contextmanager
    def _tallied(self, key: Key) -> Iterator[None]:
        """Counted over all workers, if the key has a limit."""
        if key.concurrent is None:
            yield
            return
        self._begin(key, key.concurrent)
        try:
            yield
        finally:
            with suppress(sqlite3.Error):  # nobody is left to be told
                self._tallies.end(key.name)

    def permitted(self, name: str, request: Request) -> Request:
        """The request, if the key of this name may ask it; salted, unless the key says otherwise."""
        if self._path is None:
            _check_priority("who has no key", request.priority, USUAL_PRIORITY)
            return request
        key = self._named(name)
        if key is None:  # it came by a path that asks for no key, or its key was withdrawn meanwhile
            raise Unauthorized(f"this needs a key; {HOW}")
        if key.skills is not None and request.skill not in key.skills:
            allowed = ", ".join(sorted(key.skills))
            raise Forbidden(f'key {key.name} may not ask "{shown(request.skill)}"; it may ask {allowed}')
        adapter = request.settings.adapter
        if key.adapters is not None and adapter is not None and adapter not in key.adapters:
            allowed = ", ".join(sorted(key.adapters)) or "none"
            raise Forbidden(
                f'key {key.name} may not use the adapter "{shown(adapter)}"; it may use {allowed}'
            )
        _check_priority(f"key {key.name}", request.priority, key.priority)
        return replace(request, cache_salt=key.salted(request.cache_salt)) if key.salt_cache else request

    def usable(self, name: str, adapters: Iterable[str]) -> list[str]:
        """Those of the adapters that the key of this name may use."""
        key = self._named(name)
        return [it for it in adapters if key is None or key.adapters is None or it in key.adapters]

    def _named(self, name: str) -> Key | None:
        return next((key for key in self._keys if key.name == name), None)

    def _identified(self, headers: Headers) -> Key:
        given = given_key(headers)
        if not given:
            raise Unauthorized(f"this needs a key; {HOW}")
        digest, found = digest_of(given), None
        for key in self._keys:  # all of them, so that the time tells nothing
            if hmac.compare_digest(key.digest, digest):
                found = key
        if found is None:
            raise Unauthorized("the key is not known here; ask whoever runs this server for one")
        return found

    def _check_rate(self, key: Key) -> None:
        if key.requests_per_minute is None:
            return
        item = RateLimitItemPerMinute(key.requests_per_minute)
        with _stored():
            if self._windows.hit(item, key.name):
                return
            free_at, _ = self._windows.get_window_stats(item, key.name)
        after_s = free_at - self._tallies.clock()
        raise RateLimited(
            f"key {key.name} may ask {key.requests_per_minute:,} times a minute; "
            f"the next time is in {max(0.0, after_s):.1f} s",
            after_s,
        )

    def _begin(self, key: Key, limit: int) -> None:
        with _stored():
            if self._tallies.begin(key.name, limit):
                return
        raise TooManyAtOnce(
            f"key {key.name} has {limit:,} requests running, which is its limit; wait for one to end"
        )


def _check_priority(who: str, asked: int, allowed: tuple[int, int]) -> None:
    best, worst = allowed
    if not best <= asked <= worst:
        raise Forbidden(f"{who} may ask with a priority from {best} to {worst}, and this is {asked}")


def is_guarded(path: str) -> bool:
    is_open = path.startswith(OPEN) or MODEL_READY.fullmatch(path) is not None
    return (path.startswith(GUARDED) or path == "/v2") and not is_open


def given_key(headers: Headers) -> bytes:
    """The key of a request; empty if it has none. An empty header is the same as none."""
    scheme, _, bearer = headers.get("authorization", "").strip().partition(" ")
    key = bearer.strip() if scheme.lower() == "bearer" else ""
    return (key or headers.get("x-moondream-auth", "").strip()).encode("latin-1")


@contextmanager
def _stored() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        log.error("requests cannot be counted: %s", error)
        raise Busy("requests cannot be counted at the moment; ask again") from None
