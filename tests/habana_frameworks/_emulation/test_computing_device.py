"""The device that computes for the emulated card."""

import pytest
import torch

from habana_frameworks._emulation import computing_device

HAS_CUDA = torch.cuda.is_available()


def test_the_cpu_computes_by_default(monkeypatch):
    monkeypatch.delenv("PILOTAGE_HPU_ON", raising=False)
    computing_device.check()
    assert (computing_device.name(), computing_device.generator()) == ("the CPU", torch.default_generator)


def test_an_unknown_choice_is_refused(monkeypatch):
    monkeypatch.setenv("PILOTAGE_HPU_ON", "tpu")
    with pytest.raises(ValueError, match=r"PILOTAGE_HPU_ON is 'tpu'. Choose one of: cpu, cuda, off\."):
        computing_device.check()


@pytest.mark.skipif(HAS_CUDA, reason="there is a CUDA device here")
def test_cuda_without_a_card_is_refused(monkeypatch):
    monkeypatch.setenv("PILOTAGE_HPU_ON", "cuda")
    with pytest.raises(ImportError, match=r"finds no CUDA card. Unset PILOTAGE_HPU_ON"):
        computing_device.check()


@pytest.mark.parametrize(
    ("choice", "has_cuda", "is_asked_for"),
    [("", False, True), ("", True, False), ("cpu", True, True), ("cuda", True, True), ("off", False, False)],
)
def test_beside_a_cuda_card_the_device_is_registered_only_when_used(monkeypatch, choice, has_cuda, is_asked_for):
    monkeypatch.setenv("PILOTAGE_HPU_ON", choice)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: has_cuda)
    assert computing_device.is_asked_for() is is_asked_for


@pytest.mark.slow
def test_emulation_can_be_switched_off(alone):
    def program():
        import pytest
        import torch

        import habana_frameworks.torch

        assert not hasattr(torch, "hpu")
        with pytest.raises(ImportError, match="PILOTAGE_HPU_ON is 'off'"):
            import habana_frameworks.torch.core  # noqa: F401
        torch.ones(1, requires_grad=True).sum().backward()

    alone(program, PILOTAGE_HPU_ON="off")


@pytest.mark.slow
def test_a_delayed_device_is_registered_when_a_part_of_the_bridge_is_used(alone):
    def program():
        import torch

        torch.cuda.is_available = lambda: True  # as beside a card; the CPU still computes
        import habana_frameworks.torch as bridge

        assert not hasattr(torch, "hpu")
        assert bridge.hpu.is_available()
        assert torch.ones(2, device="hpu").sum().item() == 2

    alone(program)


@pytest.mark.slow
@pytest.mark.parametrize("library", ["accelerate", "transformers"])
def test_a_library_that_looks_for_a_gaudi_finds_none_until_it_is_requested(alone, tmp_path, library):
    # The lines of accelerate's is_hpu_available() and transformers' is_torch_hpu_available().
    (tmp_path / library).mkdir()
    (tmp_path / library / "__init__.py").write_text(
        "import importlib.util\n\nimport torch\n\n\ndef is_hpu_available():\n"
        "    assert importlib.util.find_spec('habana_frameworks.torch') is not None\n"
        "    import habana_frameworks.torch\n"
        "    import habana_frameworks.torch.distributed.hccl as hccl\n"
        "    return hasattr(torch, 'hpu') and torch.hpu.is_available()\n"
    )

    def program():
        import importlib
        import os
        import sys

        import torch

        sys.path.insert(0, os.environ["FOLDER"])
        look = importlib.import_module(os.environ["LIBRARY"]).is_hpu_available
        asked_for = os.environ["PILOTAGE_HPU_ON"] == "cpu"
        assert look() is asked_for
        torch.ones(1, requires_grad=True).sum()
        import habana_frameworks.torch.core  # noqa: F401

        assert look()
        assert torch.ones(2, device="hpu").sum().item() == 2

    for choice in ("", "cpu"):
        alone(program, FOLDER=str(tmp_path), LIBRARY=library, PILOTAGE_HPU_ON=choice)


@pytest.mark.parametrize(
    ("environment", "card"), [({}, 0), ({"LOCAL_RANK": "1"}, 1), ({"ID": "3", "LOCAL_RANK": "1"}, 1), ({"ID": "9"}, 1)]
)
def test_id_and_local_rank_choose_among_several_cuda_cards(monkeypatch, environment, card):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 8)
    for name in ("ID", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert computing_device.card() == card


@pytest.mark.slow
@pytest.mark.skipif(not HAS_CUDA, reason="there is no CUDA device here")
def test_a_network_trains_on_cuda_as_on_the_cpu(alone):
    def program():
        import torch
        from torch import nn

        import habana_frameworks.torch.core as htcore

        torch.backends.cudnn.deterministic, torch.backends.cudnn.allow_tf32 = True, False

        def train(device):
            torch.manual_seed(3)
            layers = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(576, 5)
            network = nn.Sequential(*layers).to(device)
            optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9, foreach=False)
            losses = []
            for _ in range(5):
                images, labels = torch.randn(6, 1, 14, 14).pin_memory(), torch.randint(5, (6,))
                optimizer.zero_grad()
                scores = network(images.to(device, non_blocking=True))
                loss = nn.functional.cross_entropy(scores, labels.to(device))
                loss.backward()
                htcore.mark_step()
                optimizer.step()
                htcore.mark_step()
                losses.append(loss.item())
            return losses

        assert "CUDA" in torch.hpu.get_device_name()
        card = train("hpu")
        torch.hpu.synchronize()
        before = torch.hpu.memory_allocated()
        kept = torch.zeros(1000, device="hpu")
        assert torch.hpu.memory_allocated() == before + 4000
        assert kept.resize_(2000)[:1000].abs().sum().item() == 0
        torch.testing.assert_close(torch.tensor(card), torch.tensor(train("cpu")), rtol=1e-3, atol=1e-4)
        assert torch.equal(
            torch.rand(3, generator=torch.Generator("hpu").manual_seed(5), device="hpu").cpu(),
            torch.rand(3, generator=torch.Generator("cuda").manual_seed(5), device="cuda").cpu(),
        )

    alone(program, PILOTAGE_HPU_ON="cuda")
