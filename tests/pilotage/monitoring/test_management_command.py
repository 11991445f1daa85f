from pathlib import Path

import pytest

from pilotage.monitoring.cards import GAUDI, NVIDIA
from pilotage.monitoring.management_command import CommandError

NVIDIA_SMI = r"""#!/bin/sh
case "$1" in
--query-gpu=index,uuid,*) printf '0, GPU-a, NVIDIA H200, 570.1, 512, 143771, 40, 60, 350.25, 1980\n'
                          printf '1, GPU-b, NVIDIA H200, 570.1, 0, 143771, [N/A], 30, [N/A], [N/A]\n' ;;
--query-compute-apps=*)   printf 'GPU-a, 41\nGPU-a, 42\n' ;;
esac
test "$2" = --format=csv,noheader,nounits
"""
HL_SMI = r"""#!/bin/sh
test "$1 $3 $4" = "-Q -f csv,noheader,nounits" &&
printf '0, 01P0-HL2080A0-15-TNBS02-01, HL-225, 1.24.1-fw, 768, 98304, 12, 31, 95\n'
"""


def install(folder: Path, monkeypatch, name: str, script: str) -> None:
    """Install a command with this name that hides any real one."""
    (folder / name).write_text(script)
    (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def test_the_output_of_nvidia_smi_is_parsed(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch, "nvidia-smi", NVIDIA_SMI)
    first, second = NVIDIA[1].devices()
    assert (first.id, first.name, first.identity, first.driver) == ("cuda:0", "NVIDIA H200", "GPU-a", "570.1")
    assert (first.memory_used, first.memory_total, first.utilisation) == (512 * 2**20, 143771 * 2**20, 0.4)
    assert (first.temperature, first.power, first.clock, first.pids) == (60, 350.25, 1980, {41, 42})
    assert (second.id, second.utilisation, second.power, second.clock, second.pids) == (
        "cuda:1",
        None,
        None,
        None,
        set(),
    )


def test_the_output_of_hl_smi_is_parsed(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch, "hl-smi", HL_SMI)
    (device,) = GAUDI[1].devices()
    assert (device.id, device.name, device.maker) == ("hpu:0", "HL-225", "Gaudi")
    assert (device.memory_total, device.utilisation, device.temperature, device.power) == (98304 * 2**20, 0.12, 31, 95)


def test_a_driver_that_fails_is_quoted(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch, "nvidia-smi", "#!/bin/sh\necho 'No devices were found'\nexit 6\n")
    with pytest.raises(CommandError, match="nvidia-smi failed with status 6: No devices were found"):
        NVIDIA[1].devices()


def test_a_command_that_cannot_be_started_does_not_crash(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch, "nvidia-smi", "")
    (tmp_path / "nvidia-smi").write_bytes(b"\x7fELF rubbish")
    with pytest.raises(CommandError, match="nvidia-smi did not answer"):
        NVIDIA[1].devices()


def test_invalid_lines_are_left_out(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch, "nvidia-smi", "#!/bin/sh\nprintf 'a, b\\n\\n,,,\\n'\n")
    assert NVIDIA[1].devices() == []


def test_a_missing_command_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CommandError, match="hl-smi was not found"):
        GAUDI[1].devices()
