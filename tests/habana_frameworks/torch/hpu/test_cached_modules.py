"""Modules that train and infer as HPU graphs."""

import pytest

pytestmark = pytest.mark.slow


def test_training_with_graphs_gives_the_losses_and_weights_of_eager_training(alone):
    def program():
        import torch
        from torch import nn

        import habana_frameworks.torch as ht

        class Network(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.norm = nn.Linear(4, 8), nn.BatchNorm1d(8)
                self.drop, self.last = nn.Dropout(0.4), nn.Linear(8, 1)

            def forward(self, batch, *, scale=1.0, names=("score",)):
                hidden = self.drop(torch.relu(self.norm(self.first(batch))))
                return dict.fromkeys(names, self.last(hidden) * scale)

        def train(prepare):
            torch.manual_seed(8)
            network = Network().to("hpu")
            trained = prepare(network)
            optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
            losses = []
            for rows, scale in ((5, 1.0), (5, 1.0), (3, 1.0), (5, 2.0), (3, 1.0), (5, 1.0)):
                batch = torch.randn(rows, 4).to("hpu").requires_grad_()
                optimizer.zero_grad()
                for _ in range(2):  # accumulated
                    loss = trained(batch, scale=scale)["score"].pow(2).mean()
                    loss.backward()
                optimizer.step()
                losses += [loss.item(), batch.grad.sum().item()]
            return losses, [each.cpu() for each in network.state_dict().values()]

        def cached(**options):
            return lambda network: ht.hpu.ModuleCacher(max_graphs=2)(model=network, **options)

        expected_losses, expected = train(lambda network: network)
        for prepare in (cached(inplace=True), cached(inplace=False, use_lfu=True, have_grad_accumulation=True)):
            losses, weights = train(prepare)
            assert losses == expected_losses
            assert all(torch.equal(one, other) for one, other in zip(weights, expected, strict=True))

        network = Network().to("hpu")
        second = ht.hpu.ModuleCacher()(network)
        assert second is not network
        assert second.first.weight is network.first.weight
        batch = torch.randn(5, 4, device="hpu")
        with torch.no_grad():
            assert torch.equal(second.eval()(batch)["score"], network.eval()(batch)["score"])

    alone(program)


def test_graphed_functions_and_modules_have_the_gradients_of_plain_ones(alone):
    def program():
        import pytest
        import torch
        from torch import nn

        import habana_frameworks.torch as ht

        torch.manual_seed(9)
        batch, module = torch.randn(5, 4, device="hpu"), nn.Linear(4, 3).to("hpu")
        other = torch.randn(5, 4, device="hpu")
        plain = nn.Linear(4, 3).to("hpu")
        plain.load_state_dict(module.state_dict())

        def loss_of(scores, labels):
            return nn.functional.cross_entropy(scores, labels), scores.argmax(1)

        scores, labels = torch.randn(5, 3, device="hpu", requires_grad=True), torch.tensor([0, 1, 2, 0, 1]).to("hpu")
        graphed, loss = ht.hpu.make_graphed_callables((module, loss_of), ((batch,), (scores, labels)))
        found, best = loss(graphed(other), labels)
        expected, expected_best = loss_of(plain(other), labels)
        found.backward()
        expected.backward()
        assert found.item() == expected.item()
        assert torch.equal(best, expected_best)
        assert not best.requires_grad
        assert torch.equal(module.weight.grad, plain.weight.grad)

        with pytest.raises(RuntimeError, match="Shapes are fixed"):
            graphed(other[:2])
        first = graphed(other).sum()
        graphed(batch)
        with pytest.raises(RuntimeError, match=r"Call backward\(\) before the next forward"):
            first.backward()
        assert torch.equal(graphed.eval()(other[:2]), plain(other[:2]))

    alone(program)
