"""A CUDA card that computes for the emulated one."""

import pytest
import torch

from habana_frameworks._emulation import computing_device

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")


def test_random_numbers_come_from_the_computing_device_or_from_the_cpu(monkeypatch):
    monkeypatch.setenv("PILOTAGE_HPU_ON", "cpu")
    monkeypatch.setenv("PILOTAGE_HPU_RANDOM", "cuda")
    with pytest.raises(ValueError, match=r"PILOTAGE_HPU_RANDOM is 'cuda', but cpu computes. Unset it"):
        computing_device.check()
    monkeypatch.setenv("PILOTAGE_HPU_RANDOM", "cpu")
    computing_device.check()
    monkeypatch.setenv("PILOTAGE_HPU_ON", "cuda")
    assert computing_device.generator() is torch.default_generator


@pytest.mark.slow
@needs_cuda
def test_attention_and_batch_norm_use_cudas_kernels_and_match_the_cpu(alone):
    def program():
        import torch
        from torch.nn import functional

        import habana_frameworks.torch.core  # noqa: F401

        def attend(device, dtype):
            torch.manual_seed(1)
            states = [torch.randn(2, 4, 32, 24).to(device, dtype).requires_grad_() for _ in range(3)]
            attended = functional.scaled_dot_product_attention(*states, is_causal=True)
            attended.square().sum().backward()
            return [each.float().cpu() for each in (attended.detach(), *(state.grad for state in states))]

        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            torch.testing.assert_close(attend("hpu", dtype), attend("cpu", dtype), rtol=2e-2, atol=5e-2)

        def normalize(device):
            torch.manual_seed(2)
            norm = torch.nn.BatchNorm2d(8).to(device)
            images = torch.randn(4, 8, 40, 64).to(device).requires_grad_()
            normalized = norm(images)
            kernel = type(normalized.grad_fn).__name__
            if device == "cuda":  # backward() does not work beside another accelerator
                return kernel, []
            normalized.pow(3).sum().backward()
            kept = normalized.detach(), images.grad, norm.weight.grad, norm.running_mean, norm.running_var
            return kernel, [each.cpu() for each in kept]

        (kernel, card), (expected, _), (_, processor) = (normalize(device) for device in ("hpu", "cuda", "cpu"))
        assert kernel == expected
        torch.testing.assert_close(card, processor, rtol=1e-4, atol=1e-4)

    alone(program, PILOTAGE_HPU_ON="cuda")


@pytest.mark.slow
@needs_cuda
def test_the_cpu_can_draw_random_numbers_for_the_card(alone):
    def program():
        import torch
        from torch.nn import functional

        import habana_frameworks.torch.core  # noqa: F401

        def draw(device):
            torch.manual_seed(3)
            ones = torch.ones(4, 5).to(device)
            out = torch.empty(0, dtype=torch.int64, device=device)
            torch.randperm(7, out=out)
            generator = torch.Generator(device).manual_seed(5)
            drawn = [functional.dropout(ones, 0.3), torch.rand(5, device=device), torch.multinomial(ones, 3), out]
            drawn += [torch.zeros(3, device=device).normal_(), torch.rand(3, generator=generator, device=device)]
            assert {each.device.type for each in drawn} == {device}
            return [each.cpu() for each in drawn]

        torch.testing.assert_close(draw("hpu"), draw("cpu"), rtol=0, atol=0)

    alone(program, PILOTAGE_HPU_ON="cuda", PILOTAGE_HPU_RANDOM="cpu")


@pytest.mark.slow
@needs_cuda
def test_backward_may_begin_with_a_matrix_product(alone):
    def program():
        import torch

        import habana_frameworks.torch.core  # noqa: F401

        layer = torch.nn.Linear(3, 1).to("hpu")
        # The gradient of a sum runs no kernel, so a matrix product is the first kernel in the thread of backward().
        layer(torch.full((1, 3), 2.0).to("hpu")).sum().backward()
        assert layer.weight.grad.tolist() == [[2.0, 2.0, 2.0]]

    alone(program, PILOTAGE_HPU_ON="cuda")


@pytest.mark.slow
@needs_cuda
def test_collectives_reach_tensors_of_the_card(alone):
    def program():
        import torch
        import torch.distributed as dist

        import habana_frameworks.torch.distributed.hccl  # noqa: F401

        dist.init_process_group("hccl", init_method="tcp://127.0.0.1:0", rank=0, world_size=1)
        total = torch.full((3,), 2.0, device="hpu")
        dist.all_reduce(total)
        dist.broadcast(total, 0)
        gathered = [torch.zeros(3, device="hpu")]
        dist.all_gather(gathered, total)
        assert gathered[0].tolist() == [2.0, 2.0, 2.0]
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1).to("hpu"))
        model(total[None]).sum().backward()
        assert model.module.weight.grad.tolist() == [[2.0, 2.0, 2.0]]
        dist.destroy_process_group()

    alone(program, PILOTAGE_HPU_ON="cuda")
