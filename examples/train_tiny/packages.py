"""Packages of npm's and Debian's registries, unpacked for as long as they are looked into."""

import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory


@contextmanager
def npm_package(name: str, version: str) -> Iterator[Path]:
    """Needs `npm`, and a registry that it knows."""
    with TemporaryDirectory() as folder:
        command = ["npm", "pack", "--silent", "--pack-destination", folder, f"{name}@{version}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        [archive] = Path(folder).glob("*.tgz")
        with tarfile.open(archive) as file:
            file.extractall(folder, filter="data")
        yield Path(folder, "package")


@contextmanager
def debian_package(name: str) -> Iterator[Path]:
    """Needs `apt-get`, and a registry that it knows."""
    with TemporaryDirectory() as folder:
        fetch = ["apt-get", "download", "--quiet", name]
        subprocess.run(fetch, check=True, cwd=folder, stdout=subprocess.DEVNULL)
        [archive] = Path(folder).glob("*.deb")
        subprocess.run(["dpkg-deb", "-x", str(archive), folder], check=True)
        yield Path(folder)
