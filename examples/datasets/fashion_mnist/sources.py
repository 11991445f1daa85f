"""The sources of Fashion-MNIST, behind one method."""

from __future__ import annotations

import http.client
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from examples.datasets.fashion_mnist.content import content_of
from examples.datasets.fashion_mnist.files import DataFile
from pilotage.errors import DatasetError
from pilotage.whole_files import write_whole

UPSTREAM = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
DEBIAN_DIRECTORY = Path("/usr/share/datasets/fashion-mnist")
DEBIAN_PACKAGE = "dataset-fashion-mnist"


@dataclass(frozen=True, slots=True)
class Findings:
    """The result of one source: the content of files by name, and a line for each problem."""

    contents: Mapping[str, bytes] = field(default_factory=dict)
    complaints: Sequence[str] = ()


class Source(Protocol):
    """A place that files may come from."""

    @property
    def name(self) -> str:
        """Its name in messages."""
        ...

    def fetch(self, wanted: Sequence[DataFile]) -> Findings:
        """The wanted files that it has, verified; problems are reported, not raised."""
        ...


@dataclass(frozen=True, slots=True)
class Directory:
    """A directory with the files, gzipped or not, as distributed or in torchvision's layout."""

    path: Path
    remedy: str = "Looking for it elsewhere."
    """The last sentence of the message about a damaged file."""

    @property
    def name(self) -> str:
        """Its path."""
        return str(self.path)

    def fetch(self, wanted: Sequence[DataFile]) -> Findings:
        """Read the files; nothing is written."""
        contents: dict[str, bytes] = {}
        complaints: list[str] = []
        for file in wanted:
            for place in self.places(file):
                try:
                    contents[file.name] = content_of(place.read_bytes(), file)
                    break
                except (OSError, DatasetError) as error:
                    complaints.append(f"{place}: {_reason(error)}. {self.remedy}")
        if not contents and not complaints:
            complaints.append(
                f"{self.path}: {'none of the files is here' if self.path.is_dir() else 'no such directory'}."
            )
        return Findings(contents, complaints)

    def places(self, file: DataFile) -> Iterator[Path]:
        """The existing paths of ``file``."""
        for folder in (self.path, self.path / "fashion-mnist", self.path / "FashionMNIST" / "raw"):
            for name in (f"{file.name}.gz", file.name):
                if (folder / name).is_file():
                    yield folder / name


@dataclass(frozen=True, slots=True)
class Website:
    """The server of the data set's authors, or a mirror; downloads are kept in the cache."""

    cache: Path
    url: str = UPSTREAM
    timeout: float = 10.0
    """Seconds to wait for an answer."""

    @property
    def name(self) -> str:
        """Its address."""
        return self.url

    def fetch(self, wanted: Sequence[DataFile]) -> Findings:
        """Download into memory, verify, then write."""
        contents: dict[str, bytes] = {}
        complaints: list[str] = []
        for file in wanted:
            address = f"{self.url.rstrip('/')}/{file.name}.gz"
            try:
                with urllib.request.urlopen(address, timeout=self.timeout) as response:
                    stored = response.read()
                contents[file.name] = content_of(stored, file)
            except (OSError, http.client.HTTPException, DatasetError) as error:
                complaints.append(f"{address}: {_reason(error)}.")
                # After one failure do not try the other files: each could cost a timeout.
                break
            complaints += _keep(self.cache, file, stored)
        return Findings(contents, complaints)


@dataclass(frozen=True, slots=True)
class DebianPackage:
    """Debian's package, downloaded and unpacked without installing it, which needs no root."""

    cache: Path
    timeout: float = 120.0
    """Time limit of each command in seconds."""

    @property
    def name(self) -> str:
        """The command that downloads it."""
        return f"apt-get download {DEBIAN_PACKAGE}"

    def fetch(self, wanted: Sequence[DataFile]) -> Findings:
        """Unpack in a temporary directory and keep the verified files in the cache."""
        missing = [tool for tool in ("apt-get", "dpkg-deb") if shutil.which(tool) is None]
        if missing:
            return Findings(complaints=[f"{self.name}: {missing[0]} is not installed."])
        with tempfile.TemporaryDirectory(prefix="pilotage-") as name:
            folder = Path(name)
            try:
                package = self._download(folder)
                self._run("dpkg-deb", "-x", str(package), str(folder), folder=folder)
            except DatasetError as error:
                return Findings(complaints=[f"{self.name}: {error}."])
            unpacked = Directory(
                folder / DEBIAN_DIRECTORY.relative_to("/"), remedy="The package has other files than expected."
            )
            found = unpacked.fetch(wanted)
            kept = [
                complaint
                for file in wanted
                if file.name in found.contents
                for complaint in _keep(self.cache, file, next(unpacked.places(file)).read_bytes())
            ]
            return Findings(found.contents, [*found.complaints, *kept])

    def _download(self, folder: Path) -> Path:
        try:
            self._apt("download", DEBIAN_PACKAGE, folder=folder)
        except DatasetError:
            # The package lists may be empty, as in most container images: download separate lists.
            (folder / "lists" / "partial").mkdir(parents=True)
            own_lists = ("-o", f"Dir::State::Lists={folder / 'lists'}", "-o", f"Dir::Cache={folder}")
            self._apt(*own_lists, "-o", "Acquire::Languages=none", "update", folder=folder)
            self._apt(*own_lists, "download", DEBIAN_PACKAGE, folder=folder)
        packages = sorted(folder.glob(f"{DEBIAN_PACKAGE}_*.deb"))
        if not packages:
            raise DatasetError("it succeeded but left no package")
        return packages[0]

    def _apt(self, *arguments: str, folder: Path) -> None:
        patience = ("-o", "Acquire::http::Timeout=10", "-o", "Acquire::https::Timeout=10", "-o", "Acquire::Retries=0")
        self._run("apt-get", "-q", *patience, *arguments, folder=folder)

    def _run(self, *command: str, folder: Path) -> None:
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=self.timeout, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise DatasetError(_reason(error)) from error
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if line.startswith("E:")] or done.stderr.splitlines()
            raise DatasetError(lines[0].rstrip(".") if lines else f"{command[0]} ended with status {done.returncode}")


def _keep(cache: Path, file: DataFile, stored: bytes) -> list[str]:
    """Write into the cache; a failure is only reported, because the content can still be used."""
    place = cache / f"{file.name}.gz"
    try:
        write_whole(place, stored)
    except OSError as error:
        return [f"{place}: {_reason(error)}. It could not be kept and will be downloaded again next time."]
    return []


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"the server answers {error.code} {error.reason}"
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
    return str(reason).strip().rstrip(".") or type(error).__name__
