"""Tensors on the emulated device: they report their device and have the values of the CPU."""

import pytest

pytestmark = pytest.mark.slow


def test_the_emulation_is_announced_in_one_line(alone):
    def program():
        import habana_frameworks.torch.core
        import habana_frameworks.torch.hpu  # noqa: F401

    lines = alone(program).stderr.splitlines()
    assert len([line for line in lines if "the device hpu is emulated on the CPU (eager mode)" in line]) == 1


def test_the_device_does_not_exist_before_the_import(alone):
    def program():
        import torch

        import pilotage

        assert pilotage
        assert not hasattr(torch, "hpu")

    alone(program)


def test_a_convolutional_network_trains_to_the_last_bit_as_on_the_cpu(alone):
    def program():
        import torch
        from torch import nn

        import habana_frameworks.torch.core as htcore

        def train(device):
            torch.manual_seed(3)
            network = nn.Sequential(
                nn.Conv2d(1, 4, 3),
                nn.BatchNorm2d(4),
                nn.ReLU(),
                nn.MaxPool2d(2),
                nn.Flatten(),
                nn.Dropout(0.3),
                nn.Linear(144, 5),
            ).to(device)
            optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
            losses = []
            for _ in range(5):
                images, labels = torch.randn(6, 1, 14, 14), torch.randint(5, (6,))
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(network(images.to(device)), labels.to(device))
                loss.backward()
                htcore.mark_step()
                optimizer.step()
                htcore.mark_step()
                losses.append(loss.item())
            assert {each.device.type for each in network.state_dict().values()} == {device}
            return losses, [each.cpu() for each in network.state_dict().values()]

        (host_losses, host), (card_losses, card) = train("cpu"), train("hpu")
        assert host_losses == card_losses
        assert all(torch.equal(one, other) for one, other in zip(host, card, strict=True))

    alone(program)


def test_a_transformer_trains_to_the_last_bit_as_on_the_cpu(alone):
    def program():
        import torch
        from torch import nn

        import habana_frameworks.torch.core  # noqa: F401

        def train(device):
            torch.manual_seed(4)
            layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.1, batch_first=True)
            network = nn.Sequential(nn.Embedding(20, 16), nn.TransformerEncoder(layer, 2), nn.Linear(16, 20)).to(device)
            optimizer = torch.optim.AdamW(network.parameters(), lr=0.01)
            for _ in range(5):
                tokens = torch.randint(20, (3, 9)).to(device)
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(network(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
                loss.backward()
                optimizer.step()
            return loss.item(), [each.detach().cpu() for each in network.parameters()]

        (host_loss, host), (card_loss, card) = train("cpu"), train("hpu")
        assert host_loss == card_loss
        assert all(torch.equal(one, other) for one, other in zip(host, card, strict=True))

    alone(program)


def test_every_way_to_move_tensors_to_the_card_works(alone):
    def program():
        import copy

        import torch
        from torch.utils.data import DataLoader

        import habana_frameworks.torch.core  # noqa: F401

        host = torch.arange(6.0).view(2, 3)
        card = host.to("hpu")
        made = [
            host.hpu(),
            torch.ones(2, device="hpu"),
            card.new_zeros(2),
            torch.randperm(3, device="hpu"),
            copy.deepcopy(card),
        ]
        assert all(str(each.device) == "hpu:0" and each.is_hpu for each in made)
        assert not host.is_hpu
        assert torch.nn.Linear(2, 2).hpu().weight.is_hpu
        with torch.device("hpu"):
            assert torch.nn.Linear(2, 2).weight.is_hpu
        torch.save({"whole": card, "row": card[0]}, "saved.pt")
        loaded = torch.load("saved.pt")
        loaded["row"].add_(1)
        assert loaded["whole"].is_hpu
        assert loaded["whole"].tolist() == [[1, 2, 3], [3, 4, 5]]
        assert not torch.load("saved.pt", map_location="cpu")["whole"].is_hpu
        torch.save(host, "host.pt")
        assert torch.load("host.pt", map_location="hpu").is_hpu
        batches = [
            each.to("hpu", non_blocking=True) for each in DataLoader(host, batch_size=1, pin_memory=True, num_workers=1)
        ]
        assert torch.equal(torch.cat(batches).cpu(), host)

    alone(program)


def test_views_share_memory_and_outputs_take_the_size_they_need(alone):
    def program():
        import torch

        import habana_frameworks.torch.core  # noqa: F401

        card = torch.arange(6.0, device="hpu").view(2, 3)
        card[:, 1].add_(10)
        card.t()[2] = 7
        assert card.tolist() == [[0, 11, 7], [3, 14, 7]]
        out = torch.empty(0, device="hpu")
        torch.add(card, 1, out=out)
        assert out.tolist() == [[1, 12, 8], [4, 15, 8]]
        complex_card = torch.tensor([1 + 2j, 3 - 1j], device="hpu")
        assert complex_card.conj().resolve_conj().tolist() == [1 - 2j, 3 + 1j]
        assert card.resize_(1, 2).tolist() == [[0, 11]]

    alone(program)


def test_inference_mode_makes_the_tensors_that_it_makes_on_the_cpu(alone):
    def program():
        import torch

        import habana_frameworks.torch.core  # noqa: F401

        def answers(device):
            torch.manual_seed(1)
            layer, given = torch.nn.Linear(3, 4).to(device), torch.randn(2, 3).to(device)
            with torch.inference_mode():
                made = given * 2
                inside = [layer(given), given.view(-1), given[0], given.t().chunk(3)[1], made.view(-1), given.clone()]
            # A view keeps the kind of its tensor outside too.
            inside += [made.view(-1), made[1], made + 1]
            layer(given).sum().backward()
            return [(each.cpu(), each.is_inference()) for each in (*inside, layer.weight.grad)]

        for (number, (own, kind)), (expected, wanted) in zip(enumerate(answers("hpu")), answers("cpu"), strict=True):
            assert torch.equal(own, expected), number
            assert kind == wanted, number

    alone(program)


def test_tensors_of_two_devices_are_not_mixed(alone):
    def program():
        import pytest
        import torch
        from torch.nn import functional

        import habana_frameworks.torch.core  # noqa: F401

        host, card = torch.ones(3, 3), torch.ones(3, 3, device="hpu")
        mixed = [
            lambda: card + host,
            lambda: host + card,
            lambda: card.add_(host),
            lambda: host.add_(card),
            lambda: host @ card,
            lambda: functional.linear(card, host),
            lambda: functional.conv1d(card[None], host[None]),
            lambda: torch.cat([host, card]),
            lambda: functional.cross_entropy(card, torch.tensor([0, 1, 2])),
            lambda: functional.embedding(torch.tensor([1]), card),
        ]
        for mix in mixed:
            with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
                mix()
        # As on other devices, scalars and indices may come from the host.
        assert (card * torch.tensor(2.0))[torch.tensor([0, 2])].sum().item() == 12
        for wrong in (lambda: torch.ones(1, device="hpu:1"), lambda: host.hpu(1)):
            with pytest.raises(RuntimeError, match="one emulated Gaudi card"):
                wrong()
        with pytest.raises(AssertionError, match="one emulated Gaudi card"):
            torch.hpu.set_device(1)

    alone(program)


def test_random_numbers_are_those_of_the_cpu(alone):
    def program():
        import torch

        import habana_frameworks.torch.core  # noqa: F401

        def drawn(device, generator=None):
            return torch.rand(3, device=device, generator=generator).cpu()

        torch.manual_seed(5)
        host = drawn("cpu")
        torch.manual_seed(5)
        assert torch.equal(drawn("hpu"), host)
        torch.hpu.manual_seed(5)
        assert torch.equal(drawn("hpu"), host)
        generator = torch.Generator(device="hpu").manual_seed(5)
        assert generator.device.type == "hpu"
        state = generator.get_state()
        assert torch.equal(drawn("hpu", generator), host)
        generator.set_state(state)
        assert torch.equal(drawn("hpu", generator), host)

    alone(program)


def test_autocast_computes_as_the_cpus_autocast_does(alone):
    def program():
        import torch
        from torch import nn

        import habana_frameworks.torch.core  # noqa: F401

        def train(device):
            torch.manual_seed(6)
            network = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 5)).to(device)
            images, labels = torch.randn(6, 1, 6, 6).to(device), torch.randint(5, (6,)).to(device)
            with torch.autocast(device, dtype=torch.bfloat16):
                scores = network(images)
                loss = nn.functional.cross_entropy(scores.float(), labels)
            loss.backward()
            return scores, [each.grad.cpu() for each in network.parameters()]

        (host_scores, host), (card_scores, card) = train("cpu"), train("hpu")
        assert card_scores.dtype == torch.bfloat16
        assert torch.equal(host_scores, card_scores.cpu())
        assert all(torch.equal(one, other) for one, other in zip(host, card, strict=True))
        with torch.autocast("hpu"):
            half = card_scores @ card_scores.t()
            assert half.dtype == torch.bfloat16
            assert torch.softmax(half.float(), 0).dtype == torch.bfloat16
            assert torch.exp(half).dtype == torch.float32
            assert torch.cat([half, half.float()]).dtype == torch.float32
        assert (card_scores.float() @ card_scores.float().t()).dtype == torch.float32

    alone(program)
