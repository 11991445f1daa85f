import pytest
import torch
from torch import nn

import poptorch
from poptorch.ops import custom
from poptorch.poptorch_core import Error

X = torch.tensor([1.0, 2.0])


@pytest.fixture(autouse=True)
def no_implementations(monkeypatch):
    monkeypatch.setattr(custom, "_implementations", {})


@pytest.fixture
def cube():
    @poptorch.implementCustomOp("Cube", "test.domain")
    def implementation(x, scale=1.0):
        return x**3 * scale

    return implementation


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([2.0, 3.0]))

    def forward(self, x):
        (y,) = poptorch.custom_op([x * self.weight], "Cube", "test.domain", 1, [x], attributes={"scale": 2.0})
        return poptorch.identity_loss(y, "sum")


@pytest.mark.usefixtures("cube")
def test_a_registered_function_is_called_with_inputs_and_attributes(compiled, tier):
    results = poptorch.custom_op([X], "Cube", "test.domain", 1, [X], attributes={"scale": 2.0})
    assert isinstance(results, list)
    assert torch.equal(results[0], 2 * X**3)
    assert torch.equal(compiled(Model(), tier=tier)(X), (2 * (X * torch.tensor([2.0, 3.0])) ** 3).sum())


@pytest.mark.usefixtures("cube")
def test_gradients_flow_through_a_custom_op(compiled):
    model, eager = Model(), Model()
    eager(X).backward()
    run = compiled(model, training=True)
    run(X)
    run.executor.fetch_weights()
    assert torch.allclose(model.weight, eager.weight - 0.1 * eager.weight.grad)


def test_an_operator_of_torch_library_can_implement_a_custom_op(compiled):
    with torch.library._scoped_library("test_custom_domain", "FRAGMENT") as library:
        library.define("SplitSum(Tensor x, int[] sizes) -> (Tensor, Tensor)")
        library.impl(
            "SplitSum", lambda x, sizes: (x[: sizes[0]].sum(), x[sizes[0] :].sum()), "CompositeImplicitAutograd"
        )

        class Split(nn.Module):
            def forward(self, x):
                examples = [torch.zeros(()), torch.zeros(())]
                return poptorch.custom_op([x], "SplitSum", "test.custom.domain", 1, examples, {"sizes": [2]})

        x = torch.arange(5.0)
        assert [float(result) for result in compiled(Split())(x)] == [1.0, 9.0]


def test_an_op_without_an_implementation_says_how_to_add_one():
    with pytest.raises(Error, match=r"@poptorch\.implementCustomOp\('Nobody', 'test.domain'\)"):
        poptorch.custom_op([X], "Nobody", "test.domain", 1, [X])


@pytest.mark.usefixtures("cube")
@pytest.mark.parametrize("examples", [[], [X, X], [X[:1]], [X.int()]])
def test_results_must_match_the_example_outputs(examples):
    with pytest.raises(Error, match="its example outputs are"):
        poptorch.custom_op([X], "Cube", "test.domain", 1, examples)


@pytest.mark.parametrize(
    "value", [None, True, {"a": 1}, [1, 2.0], ["a", 1], (1.0, "a"), [], [[1]], X, 1j], ids=lambda value: repr(value)
)
def test_attributes_must_be_numbers_strings_or_lists_of_one_kind(value):
    with pytest.raises(ValueError, match="attribute a of a custom op"):
        poptorch.custom_op([X], "Cube", "test.domain", 1, [X], attributes={"a": value})


@pytest.mark.parametrize("attributes", [[("a", 1)], "a", 3, []], ids=repr)
def test_attributes_must_be_a_dictionary(attributes):
    with pytest.raises(ValueError, match=r"must be a dictionary of names and values"):
        poptorch.custom_op([X], "Cube", "test.domain", 1, [X], attributes=attributes)


def test_names_of_attributes_must_be_strings():
    with pytest.raises(ValueError, match="must be a string, not 3"):
        poptorch.custom_op([X], "Cube", "test.domain", 1, [X], attributes={3: 1})


@pytest.mark.parametrize("attributes", [{"ä": 1}, {"a": "ß"}, {"a": ["x", "é"]}])
def test_attributes_must_be_ascii(attributes):
    with pytest.raises(ValueError, match=r"contains non-ASCII characters\."):
        poptorch.custom_op([X], "Cube", "test.domain", 1, [X], attributes=attributes)


@pytest.mark.parametrize(("value", "word"), [(1e39, "high"), (-1e39, "low"), ([1.0, 1e300], "high")])
def test_float_attributes_must_fit_into_32_bits(value, word):
    with pytest.raises(Error, match=rf"is too {word} for a Popart float attribute\."):
        poptorch.custom_op([X], "Cube", "test.domain", 1, [X], attributes={"a": value})
