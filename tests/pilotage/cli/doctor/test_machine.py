import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.cli.doctor.finding import Verdict
from pilotage.cli.doctor.machine import CardCounts, accelerator, count_cards, memory, processor

GIBIBYTE = 2**30


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def plug_in(root: Path, slot: str, vendor: str, kind: str) -> None:
    write(root / f"sys/bus/pci/devices/{slot}/vendor", f"{vendor}\n")
    write(root / f"sys/bus/pci/devices/{slot}/class", f"{kind}\n")


def test_cards_are_recognised_by_their_vendor(tmp_path):
    plug_in(tmp_path, "0000:00:01.0", "0x10de", "0x030200")
    plug_in(tmp_path, "0000:00:02.0", "0x10de", "0x030000")
    plug_in(tmp_path, "0000:00:03.0", "0x10de", "0x040300")  # the audio function of a graphics card
    plug_in(tmp_path, "0000:00:04.0", "0x1da3", "0x120000")
    plug_in(tmp_path, "0000:00:05.0", "0x1d95", "0x120000")
    plug_in(tmp_path, "0000:00:06.0", "0x8086", "0x060000")
    assert count_cards(tmp_path) == CardCounts(nvidia=2, gaudi=1, ipu=1)


def test_if_the_bus_is_hidden_the_nvidia_driver_is_used(tmp_path):
    for name in ("nvidia0", "nvidia1", "nvidiactl"):
        write(tmp_path / "dev" / name, "")
    assert count_cards(tmp_path).nvidia == 2


def test_a_machine_without_information_still_has_a_cpu(tmp_path):
    assert count_cards(tmp_path) == CardCounts(nvidia=0, gaudi=0, ipu=0)
    assert processor(tmp_path).facts["cores"] >= 1
    assert memory(tmp_path).value == "unknown"


def test_this_machine_is_described():
    finding = processor()
    assert 1 <= finding.facts["cores"] <= os.cpu_count()
    assert finding.value.startswith(f"{finding.facts['name']}, {finding.facts['cores']} core")
    size = memory()
    assert size.facts["total"] > size.facts["free"] > 0
    assert size.value.startswith(f"{size.facts['total'] / GIBIBYTE:.1f} GiB, ")


@pytest.mark.parametrize(
    ("flags", "unit"), [("fpu avx2", "AVX2"), ("avx2 avx512f", "AVX-512"), ("amx_tile avx2", "AMX"), ("fpu", "")]
)
def test_the_widest_vector_unit_is_named(tmp_path, flags, unit):
    write(tmp_path / "proc/cpuinfo", f"model name\t: Swift 9000\nflags\t\t: {flags}\n")
    finding = processor(tmp_path)
    assert finding.facts["vector_units"] == unit
    assert finding.facts["name"] == "Swift 9000"


@given(total=st.integers(1, 2**30), limit=st.integers(1, 2**40) | st.none())
def test_a_containers_memory_limit_is_respected(tmp_path_factory, total, limit):
    root = tmp_path_factory.mktemp("machine")
    write(root / "proc/meminfo", f"MemTotal:  {total} kB\nMemFree: 1 kB\nMemAvailable: {total // 2} kB\n")
    write(root / "sys/fs/cgroup/memory.max", "max" if limit is None else str(limit))
    assert memory(root).facts["total"] == min(total * 1024, limit or total * 1024)


def test_a_containers_core_quota_is_respected(tmp_path):
    write(tmp_path / "sys/fs/cgroup/cpu.max", "100000 100000\n")
    assert processor(tmp_path).facts["cores"] == 1
    assert ", 1 core" in processor(tmp_path).value


def test_counts_have_the_right_plural():
    assert accelerator("Gaudi", 0).verdict is Verdict.ABSENT
    assert accelerator("Gaudi", 1).value == "1 card"
    assert accelerator("Gaudi", 8).value == "8 cards"
