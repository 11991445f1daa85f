import pytest
import torch
from torch import nn

from pilotage.prediction.changes.half_precision import how_to_halve
from pilotage.prediction.changes.pricing import priced_changes
from pilotage.prediction.changes.variants import types_of_attributes
from pilotage.prediction.devices import device_model
from pilotage.prediction.prediction import predicted, traced


class Converting(nn.Module):
    """Computes in the type of an attribute, or always in float32."""

    def __init__(self, kind=None):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(256, 256) for _ in range(2))
        self.kind = kind

    def forward(self, x):
        x = x.to(self.kind) if self.kind is not None else x.float()
        for layer in self.layers:
            x = torch.relu(nn.functional.linear(x, layer.weight.to(x.dtype), layer.bias.to(x.dtype)))
        return x.sum()


def halved(subject_of, module):
    model, subject = device_model("bow"), subject_of(module, [torch.zeros(65536, 256)])
    base = predicted(traced(subject, model), model)
    changes, _ = priced_changes(subject, base, seconds=100.0)
    return base, next(each for each in changes if each.option == "half precision")


def test_a_type_that_forward_converts_to_is_changed_too(subject_of):
    module = nn.ModuleDict({"inner": Converting(torch.float32)})
    module.forward = lambda x: module["inner"](x)
    base, change = halved(subject_of, module)
    assert change.how == "model.half(), model.inner.kind = torch.float16, and inputs of that type"
    # Activations dominate.
    assert change.peak_bytes < 0.65 * base.peak_bytes
    assert module["inner"].kind is torch.float32


def test_a_forward_that_always_computes_in_float32_is_named_with_its_line(subject_of):
    base, change = halved(subject_of, Converting())
    assert change.how.startswith("model.half(), and inputs of that type; most of it stays in float32: forward converts")
    assert "test_half_precision.py:" in change.how
    assert change.peak_bytes > 0.8 * base.peak_bytes


@pytest.mark.parametrize(
    ("count", "end"), [(1, "kind = torch.bfloat16"), (4, "2 more attributes that are torch.float32")]
)
def test_few_attributes_are_written_out(count, end):
    module = nn.ModuleList(Converting(torch.float32) for _ in range(count))
    how = how_to_halve("bfloat16", types_of_attributes(module))
    assert how.startswith("model.bfloat16(), model.0.kind = torch.bfloat16")
    assert how.endswith(f"{end}, and inputs of that type")
