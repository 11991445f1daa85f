"""Modules that train as HPU graphs."""

import pytest

pytestmark = pytest.mark.slow


def test_training_with_graphs_gives_the_losses_and_weights_of_eager_training(alone):
    def program():
        import pytest
        import torch
        from torch import nn

        import habana_frameworks.torch.hpu.graphs as htgraphs
        from habana_frameworks.torch.hpu.graphs import captured

        class Network(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.norm = nn.Linear(4, 8), nn.BatchNorm1d(8)
                self.drop, self.last = nn.Dropout(0.4), nn.Linear(8, 1)

            def forward(self, batch, *, scale=1.0, names=("score",)):
                hidden = self.drop(torch.relu(self.norm(self.first(batch))))
                return dict.fromkeys(names, self.last(hidden) * scale)

        made = []
        original = captured.CapturedTraining.__init__
        captured.CapturedTraining.__init__ = lambda self, *args, **kwargs: (
            made.append(1),
            original(self, *args, **kwargs),
        )[1]

        def train(prepare, trace=False):
            torch.manual_seed(8)
            network = Network().to("hpu")
            trained = prepare(network) or network
            made.clear()
            optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
            losses = []
            for step, (rows, scale) in enumerate(((5, 1.0), (5, 1.0), (3, 1.0), (5, 2.0), (3, 1.0), (5, 1.0))):
                if trace and step in (0, 3):
                    (trained.capture_end if step else trained.capture_start)()
                    assert trained.is_hpugraph_tracing() is (step == 0)
                batch = torch.randn(rows, 4).to("hpu").requires_grad_()
                optimizer.zero_grad()
                for number in range(2):  # accumulated
                    if hasattr(trained, "set_iteration_count"):
                        trained.set_iteration_count(number)
                    loss = trained(batch, scale=scale)["score"].pow(2).mean()
                    loss.backward()
                optimizer.step()
                losses += [loss.item(), batch.grad.sum().item()]
            return losses, [each.cpu() for each in network.state_dict().values()], len(made)

        def cached(max_graphs, **options):
            # Like public programs, which drop the result: graphs are put into the given model.
            return lambda network: (htgraphs.ModuleCacher(max_graphs=max_graphs)(network, **options), None)[1]

        expected_losses, expected, _ = train(lambda network: network)
        for prepare, trace, graphs in (
            (cached(10), False, 3),
            (cached(2), False, 2),
            (cached(10, have_grad_accumulation=True), False, 6),
            (cached(1, use_lfu=True), True, 1),
            (cached(1, use_lfu=True), False, 0),
        ):
            losses, weights, count = train(prepare, trace)
            assert count == graphs
            assert losses == expected_losses
            assert all(torch.equal(one, other) for one, other in zip(weights, expected, strict=True))

        network = Network().to("hpu")
        second = htgraphs.ModuleCacher()(network, inplace=False)
        assert second is not network
        assert not hasattr(network, "orig_forward")
        assert second.first.weight is network.first.weight
        batch = torch.randn(5, 4, device="hpu")
        made.clear()
        with torch.no_grad():
            assert torch.equal(second.eval()(batch)["score"], network.eval()(batch)["score"])
        assert not made  # evaluation runs without graphs

        class ByPosition(nn.Module):
            def forward(self, *args):
                return args

        for wrong in (ByPosition(), nn.DataParallel(nn.Linear(1, 1))):
            with pytest.raises(AssertionError, match="ModuleCacher"):
                htgraphs.ModuleCacher()(wrong)

    alone(program, PT_HPU_LAZY_MODE="1")


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
        graphed, loss = ht.hpu.make_graphed_callables((module, loss_of), ((batch,), (scores, labels)), dry_run=True)
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
        with pytest.raises(AssertionError, match="must all be tensors"):
            ht.hpu.make_graphed_callables(loss_of, (scores, 3))
        hooked = nn.Linear(4, 3).to("hpu")
        hooked.register_forward_hook(lambda *_: None)
        with pytest.raises(AssertionError, match="hooks"):
            ht.hpu.make_graphed_callables(hooked, (batch,))

        # In eager mode the card has no graphs for training, and says so.
        network = nn.Linear(4, 3).to("hpu")
        ht.hpu.ModuleCacher()(network)
        assert torch.equal(network(batch), network.orig_forward(batch))

    assert "ModuleCacher: HPU graphs exist in lazy mode only" in alone(program).stderr
