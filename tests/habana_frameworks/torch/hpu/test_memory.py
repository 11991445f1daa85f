"""Memory figures, events and streams of the emulated card."""

import pytest

pytestmark = pytest.mark.slow


def test_memory_is_counted_as_it_comes_and_goes(alone):
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


def test_the_module_is_torch_hpu_and_answers_for_one_card(alone):
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
