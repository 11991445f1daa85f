"""The emulated card as a device: its name, streams, events, settings and typed tensors."""

import pytest

pytestmark = pytest.mark.slow


def test_the_properties_are_those_of_the_computing_device(alone):
    def program():
        import os

        import pytest
        import torch

        import habana_frameworks.torch.core  # noqa: F401

        found = torch.hpu.get_device_properties("hpu:0")
        assert found.name == torch.hpu.get_device_name() == "Gaudi, emulated on the CPU"
        assert found.total_memory == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        assert f"dramSize={found.total_memory}" in found  # text, as in the vendor's bridge
        with pytest.raises(RuntimeError, match="one emulated Gaudi card"):
            torch.hpu.get_device_properties(1)

    alone(program)


def test_the_module_is_torch_hpu_and_has_one_card(alone):
    def program():
        import pytest
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

        assert torch.hpu.hpu is torch.hpu
        assert torch.hpu.default_stream() == torch.hpu.default_stream()
        assert torch.hpu.Stream() != torch.hpu.Stream()
        assert torch.hpu.Stream(stream_id=7).id() == 7
        made = torch.hpu.LongTensor([1, 2])
        assert (made.type(), isinstance(made, torch.hpu.LongTensor)) == ("torch.hpu.LongTensor", True)
        assert not isinstance(made, torch.hpu.FloatTensor)
        with pytest.raises(RuntimeError, match=r"makes torch\.float32 on hpu"):
            torch.hpu.FloatTensor([1.0], device="cpu")
        assert torch.hpu.manual_seed(3) is torch.hpu.default_generators[0]
        assert torch.hpu.random.default_generators == list(torch.hpu.default_generators)

        assert torch.hpu.recompute_sdp_enabled()
        with torch.hpu.sdp_kernel(enable_recompute=False) as nothing:
            assert (nothing, torch.hpu.recompute_sdp_enabled()) == ({}, False)
        assert torch.hpu.recompute_sdp_enabled()
        torch.hpu.enable_dynamic_shape()
        assert torch.hpu.get_dynamic_shape_status()
        torch.hpu.disable_dynamic_shape()
        assert not torch.hpu.get_dynamic_shape_status()
        with torch.autocast("hpu", torch.float16):
            assert torch.hpu.is_autocast_hpu_enabled()
            assert torch.hpu.get_autocast_hpu_dtype() == torch.float16
        assert not torch.hpu.is_autocast_hpu_enabled()
        with pytest.raises(AssertionError, match="one emulated Gaudi card"):
            torch.hpu.device(2)
        with torch.hpu.device_of(made), pytest.warns(FutureWarning, match="renamed to memory_reserved"):
            torch.hpu.memory_cached()

        experimental = htcore.htexp
        assert experimental._get_device_type() is experimental.synDeviceType.synDeviceGaudi2
        assert experimental._is_fp16_supported()
        assert htcore.htdebug._is_enabled_synapse_layout_handling()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.HPU], debug_activities=[1]) as profile:
            torch.ones(3, device="hpu").mul(2)
        assert any("mul" in each.key for each in profile.key_averages())

    alone(program)
