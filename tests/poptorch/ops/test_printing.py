import pytest
import torch
from torch import nn

import poptorch
from poptorch.poptorch_core import Error

X = torch.tensor([[1.5, -2.25], [30.0, 0.0]])


class Printing(nn.Module):
    def __init__(self, **arguments):
        super().__init__()
        self.layer = nn.Linear(2, 2, bias=False)
        nn.init.eye_(self.layer.weight)
        self.arguments = arguments

    def forward(self, x):
        return poptorch.identity_loss(poptorch.ipu_print_tensor(self.layer(x), **self.arguments), "sum")


def test_a_tensor_is_printed_without_a_wrapper(capfd):
    assert torch.equal(poptorch.ipu_print_tensor(X, "x"), X)
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err == "x: {\n { 1.5000 -2.2500}\n {30.0000  0.0000}\n}\n"


def test_a_tensor_is_printed_at_each_run_with_its_values(compiled, capfd, tier):
    run = compiled(Printing(title="activations"), tier=tier).compile(X)
    assert capfd.readouterr().err == ""
    for batch in (X, X + 1):
        run(batch)
        poptorch.ipu_print_tensor(batch, "activations")
        run_text, native_text = [f"activations: {part}" for part in capfd.readouterr().err.split("activations: ")[1:]]
        assert run_text == native_text


def test_each_micro_batch_is_printed(compiled, capfd):
    compiled(Printing(title="row"), poptorch.Options().deviceIterations(2))(X)
    assert capfd.readouterr().err == "row: {\n { 1.5000 -2.2500}\n}\nrow: {\n {30.0000  0.0000}\n}\n"


@pytest.mark.parametrize("print_gradient", [True, False])
def test_the_gradient_is_printed_in_backward(compiled, capfd, tier, print_gradient):
    compiled(Printing(title="y", print_gradient=print_gradient), training=True, tier=tier)(X)
    printed = capfd.readouterr().err
    assert printed.startswith("y: {\n { 1.5000 -2.2500}")
    gradient = "y_gradient: {\n {1.0000 1.0000}\n {1.0000 1.0000}\n}\n"
    assert printed.endswith(gradient) is print_gradient
    assert ("y_gradient" in printed) is print_gradient


def test_printing_changes_no_gradient(compiled):
    model = Printing(title="y")
    run = compiled(model, training=True)
    run(X)
    run.executor.fetch_weights()
    assert torch.allclose(model.layer.weight, torch.eye(2) - 0.1 * X.sum(0).expand(2, 2))


def test_a_print_whose_result_is_unused_still_prints(compiled, capfd):
    class Model(nn.Module):
        def forward(self, x):
            poptorch.ipu_print_tensor(x, "unused")
            return x + 1

    compiled(Model())(torch.ones(1))
    assert capfd.readouterr().err == "unused: {1.0000}\n"


def test_a_printed_tensor_can_be_changed_in_place(compiled, capfd):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x):
            return poptorch.identity_loss(poptorch.ipu_print_tensor(self.layer(x), "y").relu_(), "sum")

    compiled(Model(), training=True)(X)
    assert "y_gradient: {" in capfd.readouterr().err


def test_integers_are_printed_without_decimals(capfd):
    poptorch.ipu_print_tensor(torch.tensor([1, -20]), "i")
    poptorch.ipu_print_tensor(torch.tensor(True))
    assert capfd.readouterr().err == "i: {  1 -20}\n1\n"


def test_custom_separators_and_brackets_are_used(capfd):
    poptorch.ipu_print_tensor(X, "x", separator="; ", open_bracket="[", close_bracket="]", digits=1)
    assert capfd.readouterr().err == "x: [\n [ 1.5; -2.2]\n [30.0;  0.0]\n]\n"


def test_only_tensors_can_be_printed():
    with pytest.raises(Error, match=r"takes a torch\.Tensor as tensor, not list"):
        poptorch.ipu_print_tensor([1, 2])


def test_an_unknown_format_is_refused():
    with pytest.raises(KeyError, match="round"):
        poptorch.ipu_print_tensor(X, float_format="round")
