from __future__ import annotations

import operator
import re
import subprocess
import sys
import textwrap

import pytest
import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional

import pilotage
from pilotage.errors import CaptureError
from pilotage.program.graphs.rewrites import clean_up, with_declared_writes, without_checks

aten = torch.ops.aten


def targets(graph):
    return [node.target for node in graph.graph.nodes if node.op == "call_function"]


def test_views_become_reshapes_and_detach_is_removed():
    graph = clean_up(make_fx(lambda x: x.view(6).detach() * 2)(torch.ones(2, 3)))
    assert targets(graph) == [aten.reshape.default, aten.mul.Tensor]
    assert graph(torch.ones(3, 2).t()).tolist() == [2] * 6


def test_unused_values_are_removed_and_writes_are_kept():
    def function(x):
        x.exp()
        x.add_(1)
        return x * 2

    assert targets(clean_up(make_fx(function)(torch.ones(2)))) == [aten.add_.Tensor, aten.mul.Tensor]


def test_a_graph_without_checks_computes_the_same_and_never_stops():
    def function(x):
        aten._assert_async.msg(torch.isfinite(x).all(), "not finite")
        return x * 2

    checked = clean_up(make_fx(function)(torch.ones(2)))
    unchecked = without_checks(checked)
    with pytest.raises(RuntimeError, match="not finite"):
        checked(torch.tensor([1.0, float("nan")]))
    assert unchecked(torch.tensor([1.0, float("inf")])).tolist() == [2, float("inf")]
    assert targets(unchecked) == [aten.mul.Tensor]
    assert aten._assert_async.msg in targets(checked)


def test_a_graph_without_checks_keeps_the_tensors_that_are_built_into_it():
    constant = torch.tensor([3.0, 4.0])

    def function(x):
        aten._assert_async.msg(torch.isfinite(x).all(), "not finite")
        return x * constant

    unchecked = without_checks(clean_up(make_fx(function)(torch.ones(2))))
    assert unchecked(torch.tensor([1.0, float("inf")])).tolist() == [3, float("inf")]


def test_cudnn_batch_norm_and_its_gradient_become_ones_with_declared_writes():
    def captured():
        # As captured on a card; the CPU has no kernel for it, so the graph is built by hand.
        nodes = torch.fx.Graph()
        x, weight, bias, mean, variance, gradient = (nodes.placeholder(name) for name in "xwbmvg")
        forward = nodes.call_function(aten.cudnn_batch_norm.default, (x, weight, bias, mean, variance, True, 0.1, 1e-5))
        result, save_mean, save_variance, reserve = (
            nodes.call_function(operator.getitem, (forward, n)) for n in range(4)
        )
        arguments = (x, gradient, weight, mean, variance, save_mean, save_variance, 1e-5, reserve)
        backward = nodes.call_function(aten.cudnn_batch_norm_backward.default, arguments)
        nodes.output([result, *(nodes.call_function(operator.getitem, (backward, n)) for n in range(3))])
        return torch.fx.GraphModule(nn.Module(), nodes)

    torch.manual_seed(0)
    layer = nn.BatchNorm2d(3).double()
    nn.init.normal_(layer.weight)
    x, gradient = torch.randn(4, 3, 5, 5).double().requires_grad_(), torch.randn(4, 3, 5, 5).double()
    mean, variance = layer.running_mean.clone(), layer.running_var.clone()
    given = [each.detach() for each in (x, layer.weight, layer.bias, mean, variance, gradient)]
    found = with_declared_writes(captured())(*given)
    result = layer(x)
    result.backward(gradient)
    for left, right in zip(found, (result, x.grad, layer.weight.grad, layer.bias.grad), strict=True):
        torch.testing.assert_close(left, right.detach())
    torch.testing.assert_close((mean, variance), (layer.running_mean, layer.running_var))


@pytest.mark.parametrize("tier", ["graph", "eager"])
def test_a_plain_tensor_that_requires_a_gradient_does_not_make_results_require_one(tier):
    class Hidden(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 3)
            self.hidden = [nn.Parameter(torch.ones(3))]

        def forward(self, x):
            return functional.mse_loss(self.layer(x * self.hidden[0]), torch.zeros_like(x))

    module = Hidden()
    step = pilotage.training(module, torch.optim.SGD(module.parameters(), lr=0.1), tier=tier)
    for _ in range(2):
        assert not step(torch.ones(2, 3)).requires_grad
    assert not any(tensor.requires_grad for tensor in step._executor.session.state.parameters.values())
    assert module.hidden[0].requires_grad
    assert module.hidden[0].tolist() == [1, 1, 1]


COLLECTIVES = {
    "all_reduce": "dist.all_reduce(y)",
    "all_reduce_later": "dist.all_reduce(y, async_op=True).wait()",
    "all_gather": "dist.all_gather([torch.empty_like(y)], y)",
    "broadcast": "dist.broadcast(y, 0)",
    "barrier": "dist.barrier()",
}


@pytest.fixture(scope="module")
def one_process(tmp_path_factory):
    """A gloo process group with only this process."""
    store = tmp_path_factory.mktemp("gloo") / "store"
    torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


@pytest.mark.usefixtures("one_process")
@pytest.mark.parametrize("name", COLLECTIVES)
def test_a_collective_in_forward_is_refused_with_its_line(name, tmp_path):
    source = textwrap.dedent(
        f"""
        import torch
        import torch.distributed as dist
        from torch import nn
        from torch.nn import functional

        class Talking(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(3, 3)

            def forward(self, x):
                y = self.layer(x).detach().clone()
                {COLLECTIVES[name]}
                return functional.mse_loss(self.layer(x) + y, torch.zeros_like(x))
        """
    )
    file = tmp_path / "talking.py"
    file.write_text(source)
    namespace = {}
    exec(compile(source, str(file), "exec"), namespace)
    module = namespace["Talking"]()
    line = source.splitlines().index(f"        {COLLECTIVES[name]}") + 1
    with pytest.raises(CaptureError, match=r"(?s)collective c10d::.*" + re.escape(f"{file}:{line}")):
        pilotage.training(module, torch.optim.SGD(module.parameters(), lr=0.1))(torch.ones(2, 3))


@pytest.mark.usefixtures("one_process")
def test_functional_collectives_are_captured(assert_equal):
    from torch.distributed._functional_collectives import all_reduce

    class Talking(nn.Module):
        def forward(self, x):
            return all_reduce(x * 2, "sum", torch.distributed.group.WORLD) + 1

    program = pilotage.inference(Talking())
    for _ in range(2):
        assert_equal(program(torch.ones(3)), torch.full((3,), 3.0))


@pytest.mark.slow
def test_a_refused_collective_does_not_crash_the_process(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import torch, pilotage
            torch.distributed.init_process_group("gloo", init_method="file://{tmp_path}/store", rank=0, world_size=1)

            class Talking(torch.nn.Module):
                def forward(self, x):
                    y = x * 2
                    torch.distributed.all_reduce(y)
                    return y

            try:
                pilotage.inference(Talking(), backend="cpu")(torch.ones(2))
            except pilotage.PilotageError:
                print("refused")
            torch.distributed.destroy_process_group()
            """
        )
    )
    result = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=False)
    assert (result.returncode, result.stdout) == (0, "refused\n"), result.stderr


def turned(x):
    return x.t().t().exp()


def swapped(x):
    return x.transpose(-1, 0).transpose(0, 1).exp()


@pytest.mark.parametrize("function", [turned, swapped])
def test_the_transpose_of_a_transpose_is_the_tensor_itself(function):
    x = torch.randn(2, 3)
    graph = clean_up(make_fx(function)(x))
    assert targets(graph) == [aten.exp.default]
    assert torch.equal(graph(x), x.exp())


def other_dimensions(x):
    return x.transpose(0, 1).transpose(1, 2).exp()


def returned(x):
    return x.transpose(0, 1).transpose(0, 1)


def written(x):
    y = x.clone()
    y.transpose(0, 1).transpose(0, 1).add_(1)
    return y


@pytest.mark.parametrize("function", [other_dimensions, returned, written])
def test_transposes_with_another_meaning_or_in_a_result_compute_what_they_did(function):
    x = torch.randn(2, 3, 4)
    graph = clean_up(make_fx(function)(x))
    assert torch.equal(graph(x), function(x))
    assert graph(x) is not x


def test_the_label_of_a_gradient_that_was_transposed_twice_stays():
    model, data = nn.Linear(3, 2), (torch.randn(4, 3), torch.randn(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = nn.MSELoss()
    step = pilotage.training(
        model, optimizer, loss=loss, anchors=["gradient of module.weight"], backend="cpu", tier="graph", check="off"
    )
    weight, bias = model.weight.detach().clone(), model.bias.detach().clone()
    step(*data)
    weight.requires_grad_()
    loss(functional.linear(data[0], weight, bias), data[1]).backward()
    assert torch.equal(step.anchored["gradient of module.weight"], weight.grad)
