"""torch.compile with the vendor's backend."""

import pytest


@pytest.mark.slow
def test_a_compiled_network_trains_as_an_eager_one_on_the_cpu(alone):
    def program():
        import warnings

        import pytest
        import torch
        from torch import nn

        def train(device, prepare):
            torch.manual_seed(0)
            layers = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dropout(0.2), nn.Linear(144, 5)
            network = nn.Sequential(*layers).to(device)
            compiled = prepare(network)
            optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
            losses = []
            for _ in range(3):
                optimizer.zero_grad()
                loss = compiled(torch.randn(6, 1, 8, 8).to(device)).pow(2).mean()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            return losses

        card = train(
            "hpu",
            lambda network: torch.compile(
                network, backend="hpu_backend", options={"keep_input_mutations": True, "inference": False}
            ),
        )
        assert card == train("cpu", lambda network: network)

        def attend(states):
            return nn.functional.scaled_dot_product_attention(states, states, states, is_causal=True)

        states = torch.randn(2, 3, 4, 8)
        found = torch.compile(attend, backend="hpu_backend")(states.to("hpu"))
        assert torch.equal(found.cpu(), attend(states))
        # Inductor, the default, names the backend of the card.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's own, while it imports Inductor
            with pytest.raises(Exception, match=r'Use torch.compile\(..., backend="hpu_backend"\)'):
                torch.compile(attend)(states.to("hpu"))
        with pytest.raises(Exception, match="has no option 'speed'"):
            torch.compile(nn.Linear(1, 1), backend="hpu_backend", options={"speed": 1})(torch.ones(1, 1))

    # Nothing of habana_frameworks is imported by the program: torch does it at the end of its own import.
    ran = alone(program, PT_HPU_AUTOLOAD="1", PILOTAGE_LOG_LEVEL="DEBUG")
    assert ran.stderr.count("the card would compile a graph of") == 3


@pytest.mark.slow
def test_compiled_autograd_compiles_backward_too(alone):
    def program():
        import torch

        import habana_frameworks.torch.core  # noqa: F401
        from habana_frameworks.torch.dynamo.compile_backend import config
        from habana_frameworks.torch.dynamo.compile_backend.experimental import enable_compiled_autograd
        from habana_frameworks.torch.utils.debug.dynamo_utils import FxGraphAnalyzer

        assert config.configuration_flags["inference"] is True
        layer, batch = torch.nn.Linear(3, 1).to("hpu"), torch.ones(2, 3, device="hpu")
        layer(batch).sum().backward()
        expected = layer.weight.grad.clone()
        layer.weight.grad = None
        enable_compiled_autograd()
        with FxGraphAnalyzer() as analyzer:
            torch.compile(layer, backend="hpu_backend")(batch).sum().backward()
        assert torch.equal(layer.weight.grad, expected)
        operations = analyzer.get_ops_summary()
        assert len(operations) >= 2  # forward, and backward as a graph of its own
        assert any("addmm" in name for name in operations[0])

    alone(program)
