"""A model hub on this machine, as far as downloads ask it, and its cache as an earlier download leaves it."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from huggingface_hub import constants


def commit_of(repo: str) -> str:
    return sha1(repo.encode()).hexdigest()


@dataclass
class Hub:
    """The few answers of a model hub that a download asks for."""

    repos: dict[str, dict[str, str]]
    refuse: dict[str, tuple[int, str]] = field(default_factory=dict)  # repo: HTTP status and error code
    lost: set[str] = field(default_factory=set)  # files that fail on the way
    held_back: dict[str, threading.Event] = field(default_factory=dict)  # files that wait for an event
    unknown: set[str] = field(default_factory=set)  # revisions that no repository has
    revisions: list[tuple[str, str]] = field(default_factory=list)
    files: list[str] = field(default_factory=list)

    def answer(self, path: str, head: bool) -> tuple[int, dict[str, str], bytes]:
        parts = [unquote(part) for part in path.strip("/").split("/")]
        api = parts[:2] == ["api", "models"]
        repo = "/".join(parts[2:4] if api else parts[:2])
        if repo in self.refuse:
            status, code = self.refuse[repo]
            return status, {"X-Error-Code": code}, b"{}"
        if repo not in self.repos:
            return 404, {"X-Error-Code": "RepoNotFound"}, b"{}"
        held, commit = self.repos[repo], commit_of(repo)
        if api and parts[4] == "revision":
            self.revisions.append((repo, parts[5]))
            if parts[5] in self.unknown:
                return 404, {"X-Error-Code": "RevisionNotFound"}, b"{}"
            siblings = [{"rfilename": name, "size": len(text)} for name, text in held.items()]
            return 200, {}, json.dumps({"id": repo, "sha": commit, "siblings": siblings}).encode()
        if api:
            assert parts[4:6] == ["tree", commit]
            tree = [
                {"type": "file", "path": name, "size": len(text), "oid": sha1(text.encode()).hexdigest()}
                for name, text in held.items()
            ]
            return 200, {}, json.dumps(tree).encode()
        assert parts[2:4] == ["resolve", commit]
        name = "/".join(parts[4:])
        if name in self.lost:
            return 404, {"X-Error-Code": "EntryNotFound"}, b""
        if name in self.held_back:
            self.held_back[name].wait(60)
        if not head:
            self.files.append(name)
        text = held[name].encode()
        return 200, {"ETag": f'"{sha1(text).hexdigest()}"', "X-Repo-Commit": commit}, text


@contextmanager
def serving(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """The hub under an address of this machine, which Hugging Face's library takes for its own."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, headers, body = hub.answer(urlsplit(self.path).path, self.command == "HEAD")
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "ENDPOINT", address)
        template = address + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        try:
            yield hub
        finally:
            server.shutdown()
            thread.join()


def put(cache: Path, repo: str, revision: str, files: dict[str, str]) -> Path:
    """A cache as an earlier download leaves it: a ref to a commit, blobs, and links to them."""
    root = cache / f"models--{repo.replace('/', '--')}"
    snapshot = root / "snapshots" / commit_of(repo)
    for folder in (root / "refs", root / "blobs", snapshot):
        folder.mkdir(parents=True)
    (root / "refs" / revision).write_text(commit_of(repo))
    for name, text in files.items():
        blob = root / "blobs" / sha1(text.encode()).hexdigest()
        blob.write_text(text)
        (snapshot / name).symlink_to(blob)
    return snapshot
