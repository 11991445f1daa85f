"""Unmodified CUDA scripts on the emulated card."""

import pytest

pytestmark = pytest.mark.slow


def test_a_cuda_script_trains_on_the_card_as_on_the_cpu_and_each_call_is_logged(alone):
    def program():
        import torch
        from torch import nn

        def train(device):
            torch.manual_seed(0)
            torch.cuda.manual_seed_all(0)
            network = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.2), nn.Linear(8, 2)).to(device)
            optimizer = torch.optim.AdamW(network.parameters())
            scaler = torch.amp.GradScaler(device.type)
            labels = torch.zeros(5, dtype=torch.long, device=device)
            losses = []
            for _ in range(3):
                images = torch.randn(5, 4).to(device, non_blocking=True)
                with torch.autocast(device.type, dtype=torch.bfloat16):
                    loss = nn.functional.cross_entropy(network(images), labels)
                optimizer.zero_grad()
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
                losses.append(loss.item())
            assert images.is_cuda == (device.type == "cuda")
            return losses

        assert torch.cuda.is_available()
        assert torch.ones(1).cuda().device.type == "hpu"
        assert train(torch.device("cuda")) == train(torch.device("cpu"))
        torch.cuda.synchronize()

    ran = alone(program, PT_HPU_GPU_MIGRATION="1", GPU_MIGRATION_LOG_LEVEL="1")
    for expected in (
        "[hpu_match]: torch.cuda.synchronize() --> torch.hpu.synchronize()",
        '[context]: assert torch.ones(1).cuda().device.type == "hpu"\n    [hpu_modified]: torch.Tensor.cuda(None) --> ',
        "[hpu_modified]: torch.zeros(5, dtype=torch.int64, device=device(type='cuda')) --> ",
    ):
        assert expected in ran.stderr
    assert "program.py:" in ran.stderr


def test_each_way_to_name_a_gpu_gives_the_card(alone):
    def program():
        import os

        import pytest
        import torch
        import torch.distributed as dist
        from torch import nn

        os.environ["PT_HPU_GPU_MIGRATION"] = "1"
        import habana_frameworks.torch.core  # noqa: F401

        torch.cuda.set_device(1)
        assert torch.cuda.current_device() == 0
        batch, network = torch.ones(5, 4, device=1), nn.Linear(4, 2, device="cuda").cuda(1)
        made = [
            batch,
            network.weight,
            torch.ones(2).to("cuda:1"),
            torch.ones(2).to(torch.device("cuda", 1)),
            torch.zeros_like(torch.ones(2), device="cuda"),
            batch.new_zeros(2, device="cuda:0"),
            torch.rand(2, generator=torch.Generator(device="cuda").manual_seed(1), device="cuda"),
        ]
        with torch.device("cuda"), torch.cuda.device(torch.device("cuda:1")):
            made.append(torch.ones(1))
        torch.save(batch, "saved.pt")
        made.append(torch.load("saved.pt", map_location="cuda"))
        # A file written on a GPU contains the device of each tensor.
        torch.serialization.register_package(1, lambda storage: "cuda:0", lambda storage, location: None)
        torch.save(torch.ones(2), "from_cuda.pt")
        made.append(torch.load("from_cuda.pt"))
        made.append(torch.amp.GradScaler().scale(torch.ones(1, device="cuda")))
        torch.set_default_device("cuda")
        made.append(torch.ones(1))
        torch.set_default_device("cpu")
        assert {str(each.device) for each in made} == {"hpu:0"}
        assert isinstance(torch.Generator(), torch.Generator)

        dist.init_process_group("nccl", rank=0, world_size=1, store=dist.HashStore())
        assert dist.get_backend() == "nccl"
        assert dist.is_nccl_available()
        parallel = nn.parallel.DistributedDataParallel(network.to(1), device_ids=[1], output_device=1)
        parallel(batch).sum().backward()
        dist.all_reduce(network.weight.grad)
        assert network.weight.grad.tolist() == [[5] * 4] * 2
        dist.destroy_process_group()

        with torch.cuda.amp.autocast():
            assert network(batch).dtype == torch.bfloat16
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        with torch.cuda.stream(torch.cuda.Stream()):
            start.record()
            end.record()
        assert start.elapsed_time(end) >= 0
        graph, place = torch.cuda.CUDAGraph(), torch.ones(2, device="cuda")
        with torch.cuda.graph(graph):
            doubled = place * 2
        place.fill_(5)
        graph.replay()
        assert doubled.tolist() == [10, 10]
        torch.cuda.empty_cache()
        assert torch.cuda.max_memory_allocated() > 0
        assert torch.cuda.get_device_properties(0).total_memory > 0
        torch.cuda.nvtx.range_push("part")
        with pytest.raises(NotImplementedError, match="has no counterpart on Gaudi"):
            torch.cuda.utilization()
        assert torch.compile(nn.Identity(), mode="max-autotune")(batch).is_cuda

    assert "[context]" not in alone(program).stderr
