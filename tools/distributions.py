"""Build both distributions, and try them as a stranger would: python tools/distributions.py [--home-page URL].

The files are built from a copy, because the README of the repository has relative links. A package index needs absolute
ones: with ``--home-page`` they point there, and the metadata names it; without, only the words of a link stay.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = (".", "dropins")
LINK = re.compile(r"(?P<picture>!?)\[(?P<words>[^\]]*)\]\((?P<target>(?![a-z]+:|#)[^)\s]+)\)")
SNIPPET = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def main() -> int:
    """Build, then try what was built."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="where the files go (dist)")
    parser.add_argument("--home-page", default="", help="the address that shows this tree, such as a repository's")
    parser.add_argument("--no-trial", action="store_true", help="only build")
    arguments = parser.parse_args()
    built = build(arguments.output.absolute(), arguments.home_page.rstrip("/"))
    if not arguments.home_page:
        print(
            "dist: no --home-page was given, so the metadata has no URLs and the links of the READMEs are plain words"
        )
    if not arguments.no_trial:
        for kind in (".whl", ".tar.gz"):
            attempt([path for path in built if path.name.endswith(kind)])
    return 0


def build(output: Path, home_page: str) -> list[Path]:
    """Wheels and source distributions of both, from a copy with a README for a package index."""
    shutil.rmtree(output, ignore_errors=True)
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch) / "tree"
        shutil.copytree(
            ROOT, tree, ignore=shutil.ignore_patterns(".*", "tests", "output", "dist", "site", "__pycache__")
        )
        for folder in FOLDERS:
            prepare(tree / folder, home_page)
            command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", output, tree / folder]
            print(f"dist: building {'pilotage' if folder == '.' else 'pilotage-dropins'}", flush=True)
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    built = sorted(output.iterdir())
    for path in built:
        print(f"dist: {path.name}, {path.stat().st_size / 1024:.0f} KiB")
    return built


def prepare(project: Path, home_page: str) -> None:
    """Make the links of the README absolute, and name the home page in the metadata."""
    readme = project / "README.md"
    inside = "" if project.name == "tree" else f"{project.name}/"
    readme.write_text(LINK.sub(lambda link: linked(link, home_page, inside), readme.read_text()))
    if home_page:
        metadata = project / "pyproject.toml"
        urls = f'[project.urls]\nHomepage = "{home_page}"\nChangelog = "{home_page}/CHANGELOG.md"\n\n'
        metadata.write_text(metadata.read_text().replace("[project.scripts]", urls + "[project.scripts]", 1))


def linked(link: re.Match[str], home_page: str, inside: str) -> str:
    """A link to the home page; only its words if there is none."""
    if not home_page:
        return "" if link["picture"] else link["words"]
    target = link["target"].removeprefix("../") if link["target"].startswith("../") else inside + link["target"]
    return f"{link['picture']}[{link['words']}]({home_page}/{target})"


def attempt(files: list[Path]) -> None:
    """Install into a bare environment: first without torch, then with the torch of this environment."""
    with tempfile.TemporaryDirectory() as scratch:
        environment = Path(scratch) / "bare"
        kind = "wheels" if files[0].suffix == ".whl" else "source distributions"
        print(f"dist: installing the {kind} into a bare environment", flush=True)
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        binaries = environment / "bin"
        run(binaries / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *files)
        for name in ("pilotage", "poprun", "gc-monitor", "hl-smi", "cosmictagger"):
            print("dist:", run(binaries / name, "--version").strip())
        advised = run(binaries / "python", "-c", "import poptorch", fails=True)
        if 'pip install "pilotage-dropins[torch]"' not in advised:
            sys.exit(f"dist: import poptorch without torch does not say what to install:\n{advised}")
        (packages,) = environment.glob("lib/python3.*/site-packages")
        (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
        for snippet in SNIPPET.findall((ROOT / "README.md").read_text()):
            print("dist: an example of the README prints:", run(binaries / "python", "-c", snippet).strip())


def run(*command: object, fails: bool = False) -> str:
    """What a command prints; ends the trial unless it succeeds, or fails where it should."""
    words = [str(word) for word in command]
    ran = subprocess.run(words, capture_output=True, text=True, cwd=tempfile.gettempdir())
    if (ran.returncode != 0) != fails:
        sys.exit(f"dist: {' '.join(words)} ended with {ran.returncode}:\n{ran.stdout}{ran.stderr}")
    return ran.stderr if fails else ran.stdout


if __name__ == "__main__":
    sys.exit(main())
