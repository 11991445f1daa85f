from dataclasses import replace

import torch

from pilotage.prediction.devices import device_model
from pilotage.prediction.memory.needs import memory_needs
from pilotage.prediction.memory.stages import stages_of
from pilotage.prediction.prediction import traced
from pilotage.prediction.trace.operations import Category


def needs(update, model, accumulation=1, **settings):
    return memory_needs(update, model, stages_of(update), accumulation, **settings)


def test_a_card_rounds_each_tensor_and_keeps_a_workspace(chain_prediction):
    card = chain_prediction("h200")
    at_peak = card.needs.fullest.live.at_peak()
    weights = [each for each in card.traced.update.tensors if each.category is Category.WEIGHTS]
    assert at_peak["weights"] == sum(-(-each.bytes // 512) * 512 for each in weights)
    assert at_peak["workspace"] == card.model.memory.workspace_bytes


def test_an_ipu_has_code_and_exchange_and_an_imbalance(chain_prediction):
    ipu = chain_prediction("bow")
    at_peak = ipu.needs.fullest.live.at_peak()
    assert at_peak["code"] > ipu.model.tiles.code_bytes
    assert ipu.peak_bytes > ipu.needs.fullest.peak_bytes


def test_gradient_accumulation_keeps_the_pools(subject_of):
    model = device_model("h200")
    inputs = [torch.zeros(2, 64), torch.zeros(2, 64)]
    plain = traced(subject_of(inputs=inputs), model).update
    pooled = traced(subject_of(inputs=inputs, gradient_accumulation=4), model).update
    gradients = 4 * 4 * (64 * 64 + 64)
    before, after = needs(plain, model).fullest, needs(pooled, model).fullest
    stored = [each.bytes for each in pooled.tensors if each.is_stored and each.category is Category.GRADIENTS]
    assert sum(stored) == gradients
    assert after.peak_bytes > before.peak_bytes - gradients


def test_offloaded_activations_leave_the_device_between_forward_and_backward(chain_prediction):
    card = chain_prediction("h200")
    update = card.traced.update
    last = max(i for i, each in enumerate(update.operations) if each.phase.value == "forward")
    offloaded = needs(update, card.model, offloads=True).fullest.live.by_category["activations"]
    assert offloaded[last] < card.needs.fullest.live.by_category["activations"][last]


def test_an_ipu_updates_one_parameter_after_the_other(chain_prediction):
    card, ipu = chain_prediction("h200"), chain_prediction("bow")
    place = max(i for i, each in enumerate(ipu.traced.update.operations) if each.name == "aten._foreach_sqrt")
    roots = [each.needs.fullest.live.by_category["temporaries"][place] for each in (ipu, card)]
    assert roots[0] < roots[1] / 2


def test_each_stage_has_its_own_weights(chain_prediction):
    ipu = chain_prediction("bow")
    update = ipu.traced.update
    half = tuple(
        replace(each, stage=0 if each.module in ("layers.0", "layers.1") else 1) if each.module else each
        for each in update.operations
    )
    found = memory_needs(
        replace(update, operations=half), ipu.model, stages_of(replace(update, operations=half)), accumulation=4
    )
    weights = [each.live.at_peak()["weights"] for each in found.stages]
    assert weights[0] == weights[1] == ipu.needs.fullest.live.at_peak()["weights"] // 2


def test_results_live_as_long_as_the_list_that_they_came_in(chain_prediction):
    card = chain_prediction("h200")
    update = card.traced.update
    place = next(i for i, each in enumerate(update.tensors) if not each.is_stored and 0 <= each.first < each.last < 9)
    tensor = update.tensors[place]
    later = replace(tensor, held=len(update.operations) - 1, bytes=10**9)
    held = replace(update, tensors=(*update.tensors[:place], later, *update.tensors[place + 1 :]))
    assert needs(held, card.model).fullest.live.totals[-1] > 10**9
    # The compiler of an IPU gives each result a place of its own.
    assert needs(held, device_model("bow")).fullest.live.totals[-1] < 10**9
