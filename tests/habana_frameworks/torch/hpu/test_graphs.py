"""HPU graphs: captured once, replayed on the current contents of tensors."""

import pytest

pytestmark = pytest.mark.slow


def test_a_replayed_training_step_equals_an_eager_one(alone):
    def program():
        import torch

        import habana_frameworks.torch as ht

        def network():
            torch.manual_seed(8)
            made = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).to("hpu")
            return made, torch.optim.SGD(made.parameters(), lr=0.1, momentum=0.9)

        def step(model, optimizer, batch):
            optimizer.zero_grad(set_to_none=False)
            loss = model(batch).pow(2).mean()
            loss.backward()
            optimizer.step()
            return loss

        batches = torch.randn(4, 5, 4).to("hpu")
        eager, optimizer = network()
        losses = [step(eager, optimizer, batch).item() for batch in batches]

        model, optimizer = network()
        first = step(model, optimizer, batches[0]).item()
        place = batches[1].clone()
        graph = ht.hpu.HPUGraph()
        with ht.hpu.graph(graph):
            loss = step(model, optimizer, place)
        replayed = []
        for batch in batches[1:]:
            place.copy_(batch)
            graph.replay()
            replayed.append(loss.item())
        assert [first, *replayed] == losses
        for one, other in zip(eager.parameters(), model.parameters(), strict=True):
            assert torch.equal(one.cpu(), other.cpu())

    alone(program)


def test_a_wrapped_module_gives_the_same_results_for_each_shape(alone):
    def program():
        import torch

        import habana_frameworks.torch as ht

        torch.manual_seed(9)
        plain = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU()).to("hpu").eval()
        batches = [torch.randn(rows, 4).to("hpu") for rows in (2, 2, 5, 2)]
        with torch.no_grad():
            expected = [plain(batch) for batch in batches]
            wrapped = ht.hpu.wrap_in_hpu_graph(plain)
            assert all(torch.equal(wrapped(batch), one) for batch, one in zip(batches, expected, strict=True))

    alone(program)


def test_a_value_cannot_be_read_while_capturing(alone):
    def program():
        import pytest
        import torch

        import habana_frameworks.torch as ht

        graph = ht.hpu.HPUGraph()
        with pytest.raises(RuntimeError, match="A value was read while an HPU graph was captured"), ht.hpu.graph(graph):
            torch.ones(1, device="hpu").item()
        assert torch.ones(1, device="hpu").item() == 1

    alone(program)
