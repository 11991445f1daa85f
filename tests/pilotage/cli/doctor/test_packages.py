import importlib
import sys
from pathlib import Path

import pytest

from pilotage.cli.doctor.finding import Verdict
from pilotage.cli.doctor.packages import examine_drop_in, examine_habana, examine_plug_ins


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Writes files to a folder at the front of the import path."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(name: str, text: str = "") -> None:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        importlib.invalidate_caches()

    return write


def test_the_drop_in_of_this_environment_is_recognised_as_ours():
    finding = examine_drop_in("poptorch", "Graphcore")
    assert finding.verdict is Verdict.GOOD
    assert finding.facts["maker"] == "pilotage"


def test_another_package_before_our_drop_in_gives_a_warning_whatever_is_imported(place):
    importlib.import_module("poptorch")
    place(
        "pilotage_dropins-0.1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: pilotage-dropins\nVersion: 0.1.0\n"
    )
    place("poptorch/__init__.py", "raise RuntimeError('looking is not importing')")
    finding = examine_drop_in("poptorch", "Graphcore")
    assert finding.verdict is Verdict.WARNING
    assert finding.facts["maker"] == "other"
    assert "does not run Pilotage" in finding.remedy


def test_a_package_built_on_pilotage_is_ours_wherever_it_is(place):
    place("popdist/__init__.py", "from popdist.worlds import size\n")
    place("popdist/worlds.py", "from pilotage.distributed import size\n")
    assert examine_drop_in("popdist", "Graphcore").facts["maker"] == "pilotage"


def test_a_missing_package_is_absent():
    finding = examine_drop_in("no_such_vendor", "Nobody")
    assert finding.verdict is Verdict.ABSENT
    assert finding.facts == {"maker": None, "folder": None}


def test_the_namespace_of_the_media_loader_is_not_the_gaudi_software(place, monkeypatch):
    # If our own drop-in is installed too, it is found instead.
    monkeypatch.setattr(sys, "path", [each for each in sys.path if not Path(each, "habana_frameworks/torch").is_dir()])
    place("habana_frameworks/mediapipe/__init__.py")
    finding = examine_habana()
    assert finding.facts["maker"] == "namespace"
    assert finding.verdict is Verdict.ABSENT


def test_the_gaudi_software_is_known_by_its_torch_package(place):
    place("habana_frameworks/__init__.py")
    place("habana_frameworks/torch/__init__.py", "raise RuntimeError('looking is not importing')")
    assert examine_habana().facts["maker"] == "other"


def test_our_drop_in_beside_the_vendors_own_software_is_warned_about(place):
    assert examine_habana().verdict is Verdict.GOOD
    place(
        "habana_torch_plugin-1.20.dist-info/METADATA",
        "Metadata-Version: 2.1\nName: habana-torch-plugin\nVersion: 1.20\n",
    )
    finding = examine_habana()
    assert finding.verdict is Verdict.WARNING
    assert "alongside Intel's habana-torch-plugin. Uninstall pilotage-dropins" in finding.remedy


def test_plug_ins_are_listed_by_name(place):
    assert "torch_xla" not in examine_plug_ins().value
    place("torch_xla/__init__.py")
    place("torch_maker-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: torch-maker\nVersion: 1.0\n")
    place("torch_maker-1.0.dist-info/entry_points.txt", "[torch.backends]\nmakers_device = torch_maker:load\n")
    assert examine_plug_ins().value == "makers_device, torch_xla"
