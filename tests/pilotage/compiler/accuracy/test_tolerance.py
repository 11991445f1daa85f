"""When the results of two versions of a program agree."""

from __future__ import annotations

import copy

import torch
from torch import nn

from pilotage.compiler.accuracy.tolerance import Tolerance

RIGHT = [torch.arange(100.0), torch.tensor([True]), torch.zeros(0)]


def agrees(tolerance, found):
    return not tolerance.objection(found)


def test_large_errors_are_refused():
    tolerance = Tolerance(RIGHT)
    assert agrees(tolerance, [tensor.clone() for tensor in RIGHT])
    assert agrees(tolerance, [RIGHT[0] * 1.001, RIGHT[1], RIGHT[2]])
    assert not agrees(tolerance, [RIGHT[0].flip(0), RIGHT[1], RIGHT[2]])
    assert not agrees(tolerance, [RIGHT[0], ~RIGHT[1], RIGHT[2]])


def test_results_must_be_finite_at_the_same_places():
    broken = torch.tensor([1.0, float("nan"), float("inf")])
    assert agrees(Tolerance([broken]), [broken.clone()])
    assert not agrees(Tolerance([broken]), [torch.tensor([1.0, 1.0, float("inf")])])
    assert not agrees(Tolerance([torch.ones(3)]), [broken])


def test_the_effect_of_rounding_is_tolerated():
    noisy = [RIGHT[0] + 5, RIGHT[1], RIGHT[2]]
    off = [RIGHT[0] - 10, RIGHT[1], RIGHT[2]]
    assert not agrees(Tolerance(RIGHT), off)
    assert agrees(Tolerance(RIGHT, [RIGHT, noisy]), off)
    assert not agrees(Tolerance(RIGHT, [RIGHT, noisy]), [RIGHT[0].flip(0), *RIGHT[1:]])


def test_an_error_is_named_until_rounding_shows_the_same():
    off = [RIGHT[0] - 10, RIGHT[1], RIGHT[2]]
    tolerance = Tolerance(RIGHT)
    assert tolerance.objection(off).startswith("result 0, (100,) of float32, is off by 0.1")
    tolerance.widen([[RIGHT[0] + 5, RIGHT[1], RIGHT[2]]])
    assert tolerance.objection(off) == ""


def test_small_results_use_the_noise_of_all_results():
    results = [torch.arange(100.0), torch.ones(2)]
    noisy = [torch.arange(100.0) + 10, torch.ones(2)]
    assert agrees(Tolerance(results, [noisy]), [results[0], torch.tensor([1.1, 1.0])])
    assert not agrees(Tolerance(results), [results[0], torch.tensor([1.1, 1.0])])


def deep_network() -> nn.Sequential:
    torch.manual_seed(0)
    layers: list[nn.Module] = [nn.Conv2d(3, 8, 3, padding=1, bias=False)]
    for _ in range(8):
        layers += [nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1, bias=False)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(512, 5)).bfloat16()


def gradients(network: nn.Sequential, computed_in: torch.dtype = torch.bfloat16) -> list[torch.Tensor]:
    torch.manual_seed(1)
    images, labels = torch.randn(4, 3, 8, 8).bfloat16(), torch.randint(0, 5, (4,))
    network = copy.deepcopy(network).to(computed_in)
    nn.functional.cross_entropy(network(images.to(computed_in)), labels).backward()
    return [parameter.grad.bfloat16() for parameter in network.parameters()]


def rounded_differently(network: nn.Sequential) -> nn.Sequential:
    network = copy.deepcopy(network)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(1 + torch.finfo(torch.bfloat16).eps * (2 * torch.rand(parameter.shape) - 1))
    return network


def test_a_deep_network_in_bfloat16_agrees_with_itself_rounded_less_often_and_not_with_another_network():
    network = deep_network()
    expected, rounded_less = gradients(network), gradients(network, torch.float32)
    tolerance = Tolerance(expected, [gradients(rounded_differently(network)) for _ in range(2)])
    assert not agrees(Tolerance(expected), rounded_less)
    assert agrees(tolerance, rounded_less)
    with torch.no_grad():
        network[-3].weight.copy_(network[-3].weight.transpose(2, 3).clone())
    assert not agrees(tolerance, gradients(network))


def exact_sums() -> tuple[list[torch.Tensor], list[torch.Tensor], list[torch.Tensor]]:
    """Results in float64, of the graph, and of sequential addition."""
    torch.manual_seed(0)
    exact = [torch.randn(100, dtype=torch.float64), torch.randn(3, dtype=torch.float64)]
    graph = [(each * (1 + 1e-7 * torch.randn_like(each))).float() for each in exact]
    naive = [(each * (1 + 1e-5 * torch.randn_like(each))).float() for each in exact]
    return exact, graph, naive


def test_code_with_several_times_the_error_is_refused():
    exact, graph, naive = exact_sums()
    assert agrees(Tolerance(graph), naive)
    tolerance = Tolerance(graph, exact=exact)
    assert tolerance.objection([naive[0], graph[1]]).startswith("result 0, (100,) of float32, is off float64 by ")
    assert not agrees(tolerance, [graph[0], naive[1] * 1.001])
    assert agrees(tolerance, [each.float() for each in exact])


def test_an_error_as_large_as_that_of_rounding_noise_is_tolerated():
    exact, graph, naive = exact_sums()
    other = [(each * (1 + 1e-5 * torch.randn_like(each))).float() for each in exact]
    assert agrees(Tolerance(graph, [other], exact=exact), naive)


def test_a_noisy_result_does_not_widen_the_tolerance_of_others():
    exact, graph, naive = exact_sums()
    noise = torch.randn(200) * 1e-9
    tolerance = Tolerance([*graph, noise], exact=[*exact, torch.zeros(200, dtype=torch.float64)])
    assert agrees(tolerance, [*graph, noise.flip(0)])
    assert not agrees(tolerance, [graph[0], naive[1], noise])
    assert not agrees(tolerance, [*naive, noise])


def test_numbers_that_are_not_finite_are_not_compared_with_float64():
    exact = [torch.tensor([1.0, 1e39, 3.0] * 40, dtype=torch.float64), torch.tensor([7, 8])]
    graph = [exact[0].float(), exact[1]]
    assert agrees(Tolerance(graph, exact=exact), [graph[0].clone(), exact[1]])


def test_a_result_of_pure_noise_in_the_graph_is_not_compared():
    exact = [torch.full((100,), 1e-20, dtype=torch.float64), torch.arange(100, dtype=torch.float64)]
    graph = [torch.full((100,), 2e-20), torch.arange(100.0)]
    assert agrees(Tolerance(graph, exact=exact), [torch.full((100,), 2e-19), torch.arange(100.0)])
    assert not agrees(Tolerance(graph, exact=exact), [graph[0], torch.arange(100.0) * 1.0001])


def test_float64_results_are_not_compared_with_float64():
    graph = [torch.full((4,), 1e-20, dtype=torch.float64)]
    assert agrees(Tolerance(graph, exact=[graph[0] / 2]), [graph[0] * 100])


def with_error(exact, size):
    return [(each * (1 + size * torch.randn_like(each))).float() for each in exact]


def test_a_jump_that_loud_noise_shows_is_tolerated_in_its_result():
    exact, graph, _ = exact_sums()
    exact, graph = [*exact, exact[0].flip(0)], [*graph, graph[0].flip(0)]
    jumped = [with_error(exact, 1e-3)[0], *graph[1:]]
    tolerance = Tolerance(graph, [with_error(exact, 1e-7)], exact=exact)
    assert not agrees(tolerance, jumped)
    tolerance.look_for_jumps([[*with_error(exact, 1e-3)[:1], *with_error(exact, 2e-6)[1:]]])
    assert agrees(tolerance, jumped)
    assert not agrees(tolerance, [with_error(exact, 1e-1)[0], *graph[1:]])
    assert not agrees(tolerance, [*jumped[:2], with_error(exact, 1e-3)[2]])


def test_no_jump_explains_results_that_are_as_far_from_float64_as_zeros_are():
    exact, graph, _ = exact_sums()
    tolerance = Tolerance(graph, [with_error(exact, 1e-7)], exact=exact)
    tolerance.look_for_jumps([[*with_error(exact, 0.4)[:1], *with_error(exact, 2e-6)[1:]]])
    assert agrees(tolerance, [with_error(exact, 0.4)[0], *graph[1:]])
    assert "off float64 by 1" in tolerance.objection([torch.zeros_like(graph[0]), *graph[1:]])


def test_errors_that_grow_like_the_noise_are_not_jumps():
    exact, graph, _ = exact_sums()
    tolerance = Tolerance(graph, [with_error(exact, 1e-7)], exact=exact)
    tolerance.look_for_jumps([with_error(exact, 20 * 1e-7)])
    assert not agrees(tolerance, with_error(exact, 2e-6))
