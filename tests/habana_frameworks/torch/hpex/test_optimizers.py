"""Fused optimizers compared with torch's own, and with LAMB in double precision."""

import pytest

pytestmark = pytest.mark.slow


def test_fused_optimizers_match_torchs_own(alone):
    def program():
        import torch
        from torch import nn

        import habana_frameworks.torch.core  # noqa: F401
        from habana_frameworks.torch.hpex.normalization import FusedClipNorm
        from habana_frameworks.torch.hpex.optimizers import FusedAdamW, FusedLamb, FusedSGD

        def train(device, make, clip, steps=6):
            torch.manual_seed(5)
            network = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2)).to(device)
            optimizer = make(network.parameters())
            limit = clip(network.parameters())
            for number in range(steps):
                torch.manual_seed(number)
                optimizer.zero_grad()
                network(3 * torch.randn(7, 4).to(device)).pow(2).sum().backward()
                limit(network.parameters())
                optimizer.step()
            return [each.detach().cpu() for each in network.parameters()]

        def plain_clip(parameters):
            return lambda parameters: nn.utils.clip_grad_norm_(parameters, 1.0)

        def fused_clip(parameters):
            return FusedClipNorm(parameters, 1.0).clip_norm

        pairs = [
            (
                lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
                lambda p: FusedSGD(p, 0.1, 0.9, nesterov=True),
            ),
            (
                lambda p: torch.optim.AdamW(p, lr=0.01, eps=1e-6, weight_decay=0.1),
                lambda p: FusedAdamW(p, lr=0.01, weight_decay=0.1),
            ),
        ]
        for plain, fused in pairs:
            expected, found = train("cpu", plain, plain_clip), train("hpu", fused, fused_clip)
            assert all(torch.equal(one, other) for one, other in zip(expected, found, strict=True))

        class Written(torch.optim.Optimizer):
            """The update in double precision, from the formula of each optimizer."""

            def __init__(self, parameters, rule):
                super().__init__(parameters, {})
                self.rule, self.number = rule, 0

            @torch.no_grad()
            def step(self):
                self.number += 1
                given = [each for group in self.param_groups for each in group["params"]]
                gradients = [each.grad.double() for each in given]
                norm = torch.sqrt(sum((each**2).sum() for each in gradients))
                for parameter, gradient in zip(given, gradients, strict=True):
                    state = self.state[parameter]
                    state.setdefault("exact", parameter.double())
                    state.setdefault("moments", (torch.zeros_like(gradient), torch.zeros_like(gradient)))
                    state["exact"], state["moments"] = self.rule(
                        state["exact"], gradient, state["moments"], self.number, norm
                    )
                    parameter.copy_(state["exact"])

        def uncorrected_adamw(weight, gradient, moments, number, norm):
            first = 0.9 * moments[0] + 0.1 * gradient
            second = 0.999 * moments[1] + 0.001 * gradient**2
            return weight * (1 - 0.01 * 0.1) - 0.01 * first / (second.sqrt() + 1e-6), (first, second)

        def lamb(weight, gradient, moments, number, norm):
            gradient = gradient / max(norm / 0.5, 1.0)
            first = 0.9 * moments[0] + 0.1 * gradient
            second = 0.999 * moments[1] + 0.001 * gradient**2
            update = first / (1 - 0.9**number) / ((second / (1 - 0.999**number)).sqrt() + 1e-6) + 0.1 * weight
            return weight - 0.01 * weight.norm() / update.norm() * update, (first, second)

        for rule, fused in (
            (uncorrected_adamw, lambda p: FusedAdamW(p, lr=0.01, weight_decay=0.1, bias_correction=False)),
            (lamb, lambda p: FusedLamb(p, lr=0.01, weight_decay=0.1, max_grad_norm=0.5)),
        ):
            expected = train("cpu", lambda p, rule=rule: Written(p, rule), plain_clip)
            found = train("hpu", fused, fused_clip)
            for one, other in zip(expected, found, strict=True):
                torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
        without_norms = train("hpu", lambda p: FusedLamb(p, lr=0.01, weight_decay=0.0), fused_clip)
        with_norms = train("hpu", lambda p: FusedLamb(p, lr=0.01, weight_decay=0.0, use_nvlamb=True), fused_clip)
        assert not torch.equal(without_norms[0], with_norms[0])

    alone(program)
