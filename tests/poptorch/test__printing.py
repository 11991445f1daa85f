import torch
from torch import nn

from poptorch import _printing
from poptorch.ops.blocks import BeginBlock


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 3)
        self.nothing = None
        self.register_module("missing", None)


class Described(nn.Module):
    def __repr__(self):
        return "my own words"


class Extra(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def extra_repr(self):
        return "one\ntwo"


def test_without_blocks_a_model_looks_as_torch_shows_it():
    for model in (
        nn.Linear(1, 2),
        nn.Sequential(),
        nn.Sequential(nn.Conv2d(1, 2, 3), nn.Sequential(nn.ReLU(), Inner())),
        Extra(),
        Described(),
        nn.Sequential(Described(), Extra()),
        nn.TransformerEncoderLayer(4, 2),
        nn.ModuleList(),
        nn.ModuleList([nn.ReLU(), nn.ReLU(), Inner(), Inner(), nn.Tanh()]),
        nn.ModuleDict({"a": nn.ReLU(), "b": nn.ModuleList([nn.ReLU(), nn.ReLU()])}),
        nn.ParameterList([torch.ones(2)]),
    ):
        assert _printing.module_repr(model) == repr(model)


def test_a_block_is_shown_before_the_submodule_that_begins_it():
    model = nn.Sequential(BeginBlock(nn.Linear(1, 2), ipu_id=1), nn.Sequential(BeginBlock(nn.ReLU(), "a")))
    assert _printing.module_repr(model) == (
        "Sequential(\n"
        "  (0): BeginBlock(user_id=None, ipu_id=1) Linear(in_features=1, out_features=2, bias=True)\n"
        "  (1): Sequential(\n"
        "    (0): BeginBlock(user_id=a, ipu_id=None) ReLU()\n"
        "  )\n"
        ")"
    )


def test_layers_of_a_list_with_different_blocks_are_shown_separately():
    layers = nn.ModuleList(nn.ReLU() for _ in range(4))
    BeginBlock(layers[2], ipu_id=1)
    assert _printing.module_repr(layers) == (
        "ModuleList(\n  (0-1): 2 x ReLU()\n  (2): BeginBlock(user_id=None, ipu_id=1) ReLU()\n  (3): ReLU()\n)"
    )


def test_printing_a_module_shows_it_with_blocks_and_plain(capsys):
    model = BeginBlock(nn.ReLU(), "a")
    _printing.print(model)
    assert capsys.readouterr().out == "BeginBlock(user_id=a, ipu_id=None) ReLU()\nReLU()\n"


def test_printing_anything_else_uses_pythons_print(capsys):
    _printing.print("a", torch.tensor(1), sep="-", end="!")
    _printing.print()
    assert capsys.readouterr().out == "a-tensor(1)!\n"
