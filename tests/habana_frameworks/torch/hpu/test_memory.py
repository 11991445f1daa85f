"""Memory figures, events and streams of the emulated card."""

import pytest

pytestmark = pytest.mark.slow


def test_allocated_and_freed_memory_is_counted(alone):
    def program():
        import torch

        import habana_frameworks.torch.hpu as hthpu

        before = hthpu.memory_allocated()
        tensor = torch.zeros(1000, device="hpu")
        view = tensor[10:]
        assert hthpu.memory_allocated() - before == 4000
        del tensor
        assert hthpu.memory_allocated() - before == 4000
        del view
        assert hthpu.memory_allocated() == before
        assert hthpu.max_memory_allocated() == before + 4000
        hthpu.reset_peak_memory_stats()
        assert hthpu.memory_stats()["MaxInUse"] == before

    alone(program)


def test_memory_is_summarised_in_a_table_and_released(alone):
    def program():
        import torch

        import habana_frameworks.torch.hpu as hthpu

        tensor = torch.ones(250_000, device="hpu")
        summary, short = hthpu.memory_summary(), hthpu.memory_summary("hpu:0", abbreviated=True)
        figures = dict(row.rsplit(maxsplit=1) for row in summary.splitlines()[1:])
        assert figures["in use"] == f"{hthpu.memory_allocated():,}"
        assert figures["most in use at once"] == f"{hthpu.max_memory_allocated():,}"
        assert figures["total on the device"] == f"{hthpu.mem_get_info()[1]:,}"
        assert "emulated on the CPU" in short
        assert "on the device" not in short
        before = hthpu.memory_allocated()
        torch.hpu.empty_cache()
        assert hthpu.memory_allocated() == before
        assert tensor.sum().item() == 250_000

    alone(program)


def test_the_properties_are_those_of_the_computing_device(alone):
    def program():
        import os

        import pytest
        import torch

        import habana_frameworks.torch.core  # noqa: F401

        found = torch.hpu.get_device_properties("hpu:0")
        assert found.name == torch.hpu.get_device_name() == "Gaudi, emulated on the CPU"
        assert found.total_memory == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        with pytest.raises(RuntimeError, match="one emulated Gaudi card"):
            torch.hpu.get_device_properties(1)

    alone(program)


def test_the_module_is_torch_hpu_and_has_one_card(alone):
    def program():
        import torch

        import habana_frameworks.torch.core as htcore

        assert torch.hpu is htcore.hpu
        assert (torch.hpu.is_available(), torch.hpu.device_count(), torch.hpu.current_device()) == (True, 1, 0)
        assert "emulated" in torch.hpu.get_device_name()
        start, end = (torch.hpu.Event(enable_timing=True) for _ in range(2))
        with torch.hpu.stream(torch.hpu.Stream()):
            start.record()
            end.record()
        torch.hpu.synchronize()
        assert start.elapsed_time(end) >= 0
        assert torch.accelerator.current_accelerator().type == "hpu"

    alone(program)
