"""Profilers, and parts of the bridge that have nothing to do here."""

import pytest


@pytest.mark.slow
def test_profilers_record_the_computing_device_or_say_that_there_is_nothing(alone):
    def program():
        import os

        import pytest
        import torch

        from habana_frameworks._emulation import refusals, traces
        from habana_frameworks.torch import activity_profiler, profiler
        from habana_frameworks.torch.core import weight_sharing
        from habana_frameworks.torch.hpex.optimizers import fused, moments
        from habana_frameworks.torch.low_overhead_profiler import profiler as low_overhead
        from habana_frameworks.torch.utils import profiler as older
        from habana_frameworks.torch.utils.experimental import distributed_emulation

        assert torch.profiler.profile is activity_profiler.profile
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.HPU]) as recorded:
            torch.ones(3, device="hpu").mul(2)
        assert any("mul" in each.key for each in recorded.key_averages())
        for start in (profiler.ProfilerApi.setup_profiler, low_overhead.start, older._start_profiler):
            start()
        traces.say_that_there_are_none()
        for end in (profiler.ProfilerApi.stop_profiler, low_overhead.stop, low_overhead.flush, older._stop_profiler):
            end()

        weight_sharing.enable_weight_sharing()
        distributed_emulation.distributed_emulation_apply_if_enabled()
        os.environ["PT_HPU_EMULATE_DISTRIBUTED"] = "1"
        with pytest.raises(NotImplementedError, match="Start all processes with torchrun"):
            distributed_emulation.distributed_emulation_apply_if_enabled()
        with pytest.raises(NotImplementedError, match="The emulated Gaudi has no thing: it is missing"):
            refusals.refusing("thing", "it is missing")()

        with pytest.raises(ValueError, match="floating-point"):
            moments.Moment("exp_avg", torch.int32)
        weight = torch.nn.Parameter(torch.ones(2, device="hpu"))
        assert list(fused.with_gradients({"params": [weight]}, "FusedSGD")) == []

    ran = alone(program)
    assert ran.stderr.count("the vendor's traces are empty") == 1
