"""Memory figures of the emulated card."""

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

        hthpu.reset_accumulated_memory_stats()
        earlier = hthpu.memory_stats()
        kept = [torch.zeros(size, device="hpu") for size in (10, 500, 20)]
        del kept[0]
        found = hthpu.memory_stats()
        assert (found["NumAllocs"] - earlier["NumAllocs"], found["NumFrees"]) == (3, 1)
        assert (found["ActiveAllocs"] - earlier["ActiveAllocs"], found["MaxAllocSize"]) == (2, 2000)
        assert found["TotalActiveAllocs"] == found["ActiveAllocs"]
        assert hthpu.memory_reserved() == hthpu.max_memory_reserved() == found["Limit"]

    alone(program)


def test_memory_is_summarised_in_a_table_and_released(alone):
    def program():
        import torch

        import habana_frameworks.torch.hpu as hthpu

        tensor = torch.ones(250_000, device="hpu")
        summary, short = hthpu.memory_summary(), hthpu.memory_summary("hpu:0", abbreviated=True)
        figures = dict(row.rsplit(maxsplit=1) for row in summary.splitlines()[2:])
        assert figures["in use"] == f"{hthpu.memory_allocated():,}"
        assert figures["most in use at once"] == f"{hthpu.max_memory_allocated():,}"
        assert figures["total on the device"] == f"{hthpu.mem_get_info()[1]:,}"
        assert "emulated on the CPU" in short
        assert short.startswith("PyTorch HPU memory summary, device ID 0")
        assert "on the device" not in short
        before = hthpu.memory_allocated()
        torch.hpu.empty_cache()
        assert hthpu.memory_allocated() == before
        assert tensor.sum().item() == 250_000

    alone(program)
