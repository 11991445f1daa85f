"""The wheels install into an empty environment and keep a vendor's torch."""

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

VENDORS_TORCH = """
__version__ = "2.6.0+vendor"
class version:
    cuda = None
class cuda:
    is_available = staticmethod(lambda: False)
"""


def empty_environment(folder: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return folder / "bin" / "python"


def site_packages(python: Path) -> Path:
    (folder,) = python.parents[1].glob("lib/python3.*/site-packages")
    return folder


def install_by_hand(python: Path, name: str, version: str, source: str = "") -> None:
    """Install a distribution as a vendor's installer would: a package, its metadata and the list of its files."""
    folder = site_packages(python)
    information = folder / f"{name}-{version}.dist-info"
    (folder / name).mkdir()
    information.mkdir()
    (folder / name / "__init__.py").write_text(source)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (information / "RECORD").write_text(
        f"{name}/__init__.py,,\n{information.name}/METADATA,,\n{information.name}/RECORD,,\n"
    )


def pip_install(python: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--no-index", "--no-cache-dir", "--isolated"]
    return subprocess.run([*pip, *map(str, arguments)], capture_output=True, text=True)


def run(*command: object) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"COLUMNS": "200"}
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd="/", env=environment)


def test_the_wheels_contain_only_their_packages_with_types_and_a_licence(wheels):
    assert [wheel.name.split("-")[0] for wheel in wheels] == ["pilotage", "pilotage_dropins"]
    for wheel, packages in zip(
        wheels,
        (
            {"pilotage", "cosmictagger"},
            {"poptorch", "popdist", "habana_frameworks", "pilotage_dropins", "habana_dataloader", "torch_hpu"},
        ),
        strict=True,
    ):
        names = zipfile.ZipFile(wheel).namelist()
        assert {f"{package}/py.typed" for package in packages} <= set(names)
        tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
        assert tops - {"pilotage_fallbacks.pth"} == packages
        assert any(name.endswith("/licenses/LICENSE") for name in names)


def test_the_wheel_has_everything_that_the_page_of_a_report_is_made_from(wheels):
    sources = Path(__file__).parents[2] / "src"
    assets = [path for path in (sources / "pilotage/prediction/report/assets").rglob("*") if path.is_file()]
    assert {path.suffix for path in assets} == {".css", ".html", ".js"}
    assert {str(path.relative_to(sources)) for path in assets} <= set(zipfile.ZipFile(wheels[0]).namelist())


def test_poptorch_and_the_doctor_work_from_wheels_in_an_empty_environment(wheels, tmp_path):
    python = empty_environment(tmp_path / "empty")
    installed = pip_install(python, "--no-deps", *wheels)
    assert installed.returncode == 0, installed.stderr
    # torch and numpy come from the environment of the tests, because they are too large to copy.
    (site_packages(python) / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")

    imported = run(python, "-c", "import poptorch, pilotage; print(poptorch.__file__); print(pilotage.__file__)")
    assert imported.returncode == 0, imported.stderr
    assert all(str(tmp_path) in line for line in imported.stdout.splitlines())
    doctor = run(tmp_path / "empty/bin/pilotage", "doctor", "--json")
    assert doctor.returncode == 0, doctor.stdout + doctor.stderr
    (poptorch,) = [
        each for each in json.loads(doctor.stdout)["sections"]["Vendors' packages"] if each["name"] == "poptorch"
    ]
    assert poptorch["facts"] == {"maker": "pilotage", "folder": str(site_packages(python) / "poptorch")}


def test_without_torch_the_doctor_reports_it_and_the_monitor_works(wheels, tmp_path):
    python = empty_environment(tmp_path / "bare")
    install_by_hand(python, "numpy", "2.0.0", "__version__ = '2.0.0'")
    assert pip_install(python, *wheels).returncode == 0
    doctor = run(tmp_path / "bare/bin/pilotage", "doctor")
    assert doctor.returncode == 1, doctor.stderr
    assert "not installed" in doctor.stdout
    assert "Pilotage cannot run here" in doctor.stdout
    monitor = run(tmp_path / "bare/bin/gc-monitor", "--json")
    assert monitor.returncode == 0, monitor.stderr
    assert json.loads(monitor.stdout)["cards"]


def files_of_torch(python: Path) -> dict[Path, bytes]:
    """The package torch and its metadata; packages of ours have names that begin like it."""
    found = [path for pattern in ("torch/*", "torch-*/*") for path in site_packages(python).glob(pattern)]
    return {path: path.read_bytes() for path in found if path.is_file() and path.suffix != ".pyc"}


def test_installing_pilotage_keeps_a_vendors_torch(wheels, tmp_path):
    python = empty_environment(tmp_path / "vendor")
    install_by_hand(python, "torch", "2.6.0+vendor", VENDORS_TORCH)
    install_by_hand(python, "numpy", "2.0.0", "__version__ = '2.0.0'")
    before = files_of_torch(python)
    assert before

    installed = pip_install(python, *wheels)
    assert installed.returncode == 0, installed.stderr
    assert files_of_torch(python) == before
    doctor = run(tmp_path / "vendor/bin/pilotage", "doctor")
    assert "2.6.0+vendor, vendor's build 'vendor'; outside torch>=2.11,<2.14" in doctor.stdout

    # With torch as a requirement, pip would have tried to replace it.
    refused = pip_install(python, f"{wheels[0]}[torch]")
    assert refused.returncode != 0
    assert "torch<2.14,>=2.11" in refused.stderr
