"""Fused optimizers compared with the vendor's rules, written in double precision, and with torch's own."""

import pytest

pytestmark = pytest.mark.slow


def test_fused_optimizers_follow_the_vendors_rules(alone):
    def program():
        import pytest
        import torch
        from torch import nn

        import habana_frameworks.torch.core  # noqa: F401
        from habana_frameworks.torch.hpex.movingavrg import FusedEMA
        from habana_frameworks.torch.hpex.normalization import FusedClipNorm
        from habana_frameworks.torch.hpex.optimizers import (
            FusedAdagrad,
            FusedAdamW,
            FusedLamb,
            FusedLars,
            FusedResourceApplyMomentum,
            FusedSGD,
            SparseSGD,
        )
        from habana_frameworks.torch.hpex.optimizers import distributed as functional

        def train(device, make, clip=None, steps=6):
            torch.manual_seed(5)
            network = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2)).to(device)
            optimizer = make(network.parameters())
            for number in range(steps):
                torch.manual_seed(number)
                optimizer.zero_grad()
                network(3 * torch.randn(7, 4).to(device)).pow(2).sum().backward()
                if clip is not None:
                    clip(list(network.parameters()))
                optimizer.step()
            return [each.detach().cpu() for each in network.parameters()]

        def fused_clip(parameters):
            return FusedClipNorm(parameters, 1.0).clip_norm(parameters)

        def plain_clip(parameters):
            return nn.utils.clip_grad_norm_(parameters, 1.0)

        # The same rule as torch's, in the vendor's order of arguments.
        for plain, fused in (
            (
                lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=1e-2, nesterov=True),
                lambda p: FusedSGD(p, 0.1, 0.9, 1e-2, 0, True),
            ),
            (lambda p: torch.optim.Adagrad(p, lr=0.1), lambda p: FusedAdagrad(p, 0.1)),
        ):
            expected = train("cpu", plain, plain_clip)
            found = train("hpu", fused, fused_clip)
            for one, other in zip(expected, found, strict=True):
                torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-7)

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
                for index, (parameter, gradient) in enumerate(zip(given, gradients, strict=True)):
                    state = self.state[parameter]
                    state.setdefault("exact", parameter.double())
                    state.setdefault("moments", (torch.zeros_like(gradient), torch.zeros_like(gradient)))
                    state["exact"], state["moments"] = self.rule(
                        state["exact"], gradient, state["moments"], self.number, norm, index
                    )
                    parameter.copy_(state["exact"])

        def damped_sgd(weight, gradient, moments, number, norm, index):
            buffer = 0.9 * moments[0] + (1 - 0.4) * gradient  # the first step too
            return weight - 0.1 * buffer, (buffer, buffer)

        def adamw(corrects):
            def rule(weight, gradient, moments, number, norm, index):
                first = 0.9 * moments[0] + 0.1 * gradient
                second = 0.999 * moments[1] + 0.001 * gradient**2
                rate = 0.01 * (1 - 0.999**number) ** 0.5 / (1 - 0.9**number) if corrects else 0.01
                return weight * (1 - 0.01 * 0.1) - rate * first / (second.sqrt() + 1e-2), (first, second)

            return rule

        def lamb(weight, gradient, moments, number, norm, index):
            gradient = gradient / max(norm / 0.5, 1.0)
            first = 0.9 * moments[0] + 0.1 * gradient
            second = 0.999 * moments[1] + 0.001 * gradient**2
            update = first / (1 - 0.9**number) / ((second / (1 - 0.999**number)).sqrt() + 1e-6) + 0.1 * weight
            return weight - 0.01 * weight.norm() / update.norm() * update, (first, second)

        def lars(weight, gradient, moments, number, norm, index):
            if weight.dim() > 1:
                ratio = 0.02 * weight.norm() / (gradient.norm() + 1e-2 * weight.norm() + 1e-8)
                gradient = ratio * (gradient + 1e-2 * weight)
            buffer = 0.9 * moments[0] - 0.5 * gradient
            return weight + buffer, (buffer, buffer)

        def make_lars(parameters):
            given = list(parameters)
            inner = FusedResourceApplyMomentum(given, 0.5, 0.9, 1e-2)
            return FusedLars(inner, [each.dim() > 1 for each in given], eeta=0.02)

        options = {"lr": 0.01, "eps": 1e-2, "weight_decay": 0.1}
        for rule, fused in (
            (damped_sgd, lambda p: FusedSGD(p, 0.1, 0.9, dampening=0.4)),
            (adamw(True), lambda p: FusedAdamW(p, **options)),
            (adamw(False), lambda p: FusedAdamW(p, **options, bias_correction=False)),
            (adamw(False), lambda p: FusedAdamW([{"params": list(p), "correct_bias": False}], **options)),
            (lamb, lambda p: FusedLamb(p, lr=0.01, weight_decay=0.1, max_grad_norm=0.5)),
            (lars, make_lars),
        ):
            expected = train("cpu", lambda p, rule=rule: Written(p, rule), plain_clip)
            found = train("hpu", fused, fused_clip)
            for one, other in zip(expected, found, strict=True):
                torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)

        full = train("hpu", lambda p: FusedAdamW(p, **options))
        for kind, tolerance in ((torch.bfloat16, 2e-2), (torch.float8_e4m3fn, 1e-1)):
            low = train("hpu", lambda p, kind=kind: FusedAdamW(p, **options, moments_dtype=kind))
            assert not torch.equal(low[0], full[0])
            torch.testing.assert_close(low[0], full[0], rtol=tolerance, atol=tolerance)
        without_norms = train("hpu", lambda p: FusedLamb(p, lr=0.01, weight_decay=0.0))
        with_norms = train("hpu", lambda p: FusedLamb(p, lr=0.01, weight_decay=0.0, use_lamb=True, fused=True))
        assert not torch.equal(without_norms[0], with_norms[0])

        parameter = nn.Parameter(torch.ones(3, device="hpu"))
        optimizer = FusedAdamW([parameter], moments_dtype=torch.float8_e5m2)
        parameter.grad = torch.ones(3, device="hpu")
        assert optimizer.step() is None
        assert optimizer.param_groups[0]["step"] == 1
        assert optimizer.state[parameter]["step"] == 0
        assert {"exp_avg", "exp_avg_sq", "exp_avg_scale", "exp_avg_sq_scale"} < optimizer.state[parameter].keys()
        one, other = (nn.Parameter(torch.ones(3, device="hpu")) for _ in range(2))
        given = functional.FusedAdamW([one, other], lr=0.5)
        given.step([torch.ones(3, device="hpu"), None])
        assert one.tolist() != [1, 1, 1]
        assert other.tolist() == [1, 1, 1]

        with pytest.raises(RuntimeError, match="AMSGrad"):
            FusedLamb([parameter], amsgrad=True)
        with pytest.raises(TypeError, match="Give it FusedResourceApplyMomentum"):
            FusedLars(FusedSGD([parameter], 0.1), [True])
        with pytest.raises(NotImplementedError, match="no sparse tensors"):
            SparseSGD.forward()
        clip = FusedClipNorm([parameter], 2)
        assert (clip.norm_type, clip.max_norm_t.item(), clip.dtype) == (2.0, 2.0, torch.float32)
        parameter.grad = None
        assert clip.clip_norm([parameter]).device.type == "cpu"

        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).to("hpu")
        average = FusedEMA(model, decay=0.9, updates=1000)
        before = average.ema[0].weight.clone()
        with torch.no_grad():
            model[0].weight.add_(1.0)
        average.update(model)
        share = 0.9 * (1 - torch.tensor(-1001 / 2000).exp().item())
        assert average.decay(1001) == pytest.approx(share)
        torch.testing.assert_close(average.ema[0].weight, share * before + (1 - share) * model[0].weight)
        model.classes = ["a"]
        average.update_attr(model)
        assert average.ema.classes == ["a"]
        assert not average.ema.training

    alone(program)
