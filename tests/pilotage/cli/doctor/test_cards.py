import warnings
from types import SimpleNamespace

import pytest
import torch

from pilotage.cli.doctor.cards import examine_cuda, examine_gaudi, examine_ipu
from pilotage.cli.doctor.finding import Verdict


def a_torch(*, cuda_version=None, cards=(), complaint=None):
    """A fake torch for hardware that is not present."""

    def is_available():
        if complaint:
            warnings.warn(complaint, stacklevel=2)
        return bool(cards)

    cuda = SimpleNamespace(
        is_available=is_available, device_count=lambda: len(cards), get_device_properties=cards.__getitem__
    )
    return SimpleNamespace(cuda=cuda, version=SimpleNamespace(cuda=cuda_version))


def a_card(name="NVIDIA H200"):
    return SimpleNamespace(name=name, total_memory=140 * 2**30, major=9, minor=0)


def test_this_machines_torch_is_understood():
    finding = examine_cuda(torch, 0)
    assert finding.facts["count"] == torch.cuda.device_count()
    assert finding.verdict is (Verdict.GOOD if torch.cuda.is_available() else Verdict.ABSENT)


def test_equal_cards_are_counted_together():
    finding = examine_cuda(a_torch(cuda_version="13.0", cards=(a_card(), a_card(), a_card("NVIDIA L4"))), 3)
    assert finding.verdict is Verdict.GOOD
    assert "2 × NVIDIA H200 (140 GiB, compute capability 9.0), NVIDIA L4" in finding.value
    assert finding.facts["count"] == 3


def test_a_card_that_a_cpu_build_cannot_reach_is_warned_about():
    finding = examine_cuda(a_torch(), 1)
    assert finding.verdict is Verdict.WARNING
    assert finding.value == "1 card, not usable"
    assert "CUDA build" in finding.remedy


def test_a_card_that_a_cuda_build_cannot_reach_quotes_the_drivers_complaint():
    finding = examine_cuda(a_torch(cuda_version="13.0", complaint="The NVIDIA driver on your system is too old"), 2)
    assert finding.verdict is Verdict.WARNING
    assert "The NVIDIA driver on your system is too old" in finding.remedy


@pytest.mark.parametrize("examine", [examine_cuda, examine_gaudi])
def test_without_torch_the_cards_are_still_counted(examine):
    assert examine(None, 4).value == "4 cards"
    assert examine(None, 0).verdict is Verdict.ABSENT


def test_gaudi_is_listed_if_torch_can_use_it_and_a_warning_otherwise():
    hpu = SimpleNamespace(is_available=lambda: True, device_count=lambda: 8, get_device_name=lambda index: "GAUDI3")
    assert examine_gaudi(SimpleNamespace(hpu=hpu), 8).value == "8 × GAUDI3"
    assert examine_gaudi(SimpleNamespace(), 8).verdict is Verdict.WARNING
    assert examine_gaudi(SimpleNamespace(), 0).verdict is Verdict.ABSENT


def test_a_found_ipu_is_reported_with_a_remedy():
    assert examine_ipu(0).verdict is Verdict.ABSENT
    assert "Graphcore's SDK" in examine_ipu(4).remedy
