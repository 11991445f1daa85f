"""Names, orders and fields of the original's checkpoints."""

import numpy as np
import pytest
import torch

from cosmictagger.errors import CheckpointError
from cosmictagger.records.original_files import (
    as_read,
    as_written,
    in_order,
    original_names,
    our_name,
    our_names,
    parameter_names,
    schedule_fields,
)

VOLUME = {
    "initial_convolution.conv.weight": (1, 1, 1, 1, 1),
    "net_core.down_blocks.blocks.0.convolution_1.conv.weight": (1,),
    "net_core.downsample.bottleneck.conv.weight": (1,),
    "net_core.main_module.main_module.bottleneck.conv.weight": (1,),
    "net_core.main_module.main_module.blocks.blocks.1.norm.running_mean": (1,),
    "net_core.main_module.main_module.unbottleneck.norm.weight": (1,),
    "final_layer.blocks.3.conv.bias": (1,),
    "bottleneck.weight": (1,),
}


def test_names_of_volumes_are_converted_in_both_directions():
    ours = {name: torch.zeros(shape) for name, shape in VOLUME.items()}
    theirs = list(original_names(ours))
    assert theirs == [
        "initial_convolution.conv.weight",
        "net_core.down_blocks.block_0.convolution_1.conv.weight",
        "net_core.downsample.bottleneck.conv.weight",
        "net_core.main_module.main_module.merger.conv.weight",
        "net_core.main_module.main_module.blocks.block_1.norm.running_mean",
        "net_core.main_module.main_module.splitter.norm.weight",
        "final_layer.block_3.conv.bias",
        "bottleneck.weight",
    ]
    assert list(map(our_name, theirs)) == list(ours)


def test_names_of_images_stay():
    ours = {"initial_convolution.conv.weight": torch.zeros(1, 1, 1, 1), "final_layer.blocks.0.conv.bias": torch.ones(1)}
    assert list(original_names(ours)) == list(ours)


def test_wrappers_and_observers_are_left_out():
    given = {
        "module.a.bn.weight": torch.ones(1),
        "a.conv.weight_fake_quant.scale": torch.ones(1),
        "a.norm.activation_post_process.min_val": torch.ones(1),
    }
    assert list(our_names(given)) == ["a.norm.weight"]


def test_only_parameters_count_for_positions():
    names = ["a.conv.weight", "a.norm.weight", "a.norm.running_mean", "a.norm.num_batches_tracked", "a.rounding.low"]
    assert parameter_names(names) == names[:2]


def state_in(shapes):
    state = {number: {"exp_avg": torch.full(shape, float(number))} for number, shape in enumerate(shapes)}
    return {"state": state, "param_groups": [{"lr": 1.0, "params": list(range(len(shapes)))}]}


def test_state_follows_names_and_not_positions():
    parameters = {"b": torch.zeros(2), "a": torch.zeros(3)}
    found = in_order(state_in([(3,), (2,)]), ["a", "b"], parameters)
    assert [found["state"][number]["exp_avg"].tolist() for number in (0, 1)] == [[1, 1], [0, 0, 0]]
    assert in_order({}, ["a"], parameters) == {}


def test_state_of_another_shape_is_refused():
    with pytest.raises(CheckpointError, match=r"exp_avg of a has the shape \[3\] instead of \[2\]"):
        in_order(state_in([(3,)]), ["a"], {"a": torch.zeros(2)})


def test_numpys_numbers_become_pythons():
    found = as_read({"state_dict": {}, "optimizer": {"param_groups": [{"lr": np.float64(0.5), "betas": (0.9, 0.99)}]}})
    group = found["optimizer"]["param_groups"][0]
    assert type(group["lr"]) is float
    assert group["betas"] == (0.9, 0.99)


def test_torchs_own_schedule_and_optimizer_load_what_is_written():
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.Adam([weight], 1.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5)
    weight.sum().backward()
    optimizer.step()
    written = as_written({"state_dict": {}, "optimizer": optimizer.state_dict(), "global_step": 4})
    optimizer.load_state_dict(written["optimizer"])
    schedule.load_state_dict(schedule_fields(4, 0.25))
    assert optimizer.param_groups[0]["initial_lr"] == 1.0
    assert (schedule.last_epoch, schedule.get_last_lr()) == (4, [0.25])
