from __future__ import annotations

import pytest

import popdist


def test_a_single_instance_calls_the_function():
    assert popdist.execute_on_instances({0}, divmod, 7, 2) == (3, 1)


@pytest.mark.parametrize("instances", [set(), {1}, {-1, 0}])
def test_unknown_instances_are_refused(instances):
    with pytest.raises(RuntimeError, match="instances 0 to 0"):
        popdist.execute_on_instances(instances, print)
    with pytest.raises(RuntimeError, match="instances 0 to 0"):
        popdist.registerCommunicator(instances, 1)


SCRIPT = """
from popdist.distributed import all_gather, all_reduce, barrier, broadcast
import numpy, torch
rank = popdist.getInstanceIndex()

def among(weight, *, more=0):
    return [all_gather(rank), all_reduce(rank + weight), all_reduce(float(rank), "mean"), more]

popdist.registerCommunicator({0, 2}, 5)
try:
    pair = all_gather(rank, 5)
except RuntimeError as error:
    pair = str(error)
conflict = None
try:
    if rank == 2:
        popdist.registerCommunicator({1, 2}, 5)
except RuntimeError as error:
    conflict = str(error)
results = {
    "pair": pair,
    "conflict": conflict,
    "one": popdist.execute_on_instances({0}, among, 10),
    "two": popdist.execute_on_instances({1, 2}, among, 10, more=3),
    "again": popdist.execute_on_instances([2, 1], among, 20),
    "all": among(0),
    "arrays": all_reduce(numpy.array([rank, 1])).tolist(),
    "tensors": all_reduce(torch.tensor([[float(rank)]]), "max").tolist(),
    "least": all_reduce(rank, "min"),
    "kinds": [type(all_reduce(value)).__name__ for value in (1, 1.0, numpy.ones(1), torch.ones(1))],
    "heard": broadcast({"rank": rank}, source=1),
}
barrier()
answer(results)
"""


@pytest.mark.slow
def test_instances_communicate_all_together_or_in_groups(poprun):
    first, second, third = poprun(SCRIPT, instances=3)
    assert first["pair"] == third["pair"] == [0, 2]
    assert "Instance 1 has no communicator 5" in second["pair"]
    assert "cannot be registered for [1, 2]" in third["conflict"]
    assert first["one"] == [[0], 10, 0.0, 0]
    assert second["one"] is third["one"] is first["two"] is first["again"] is None
    assert second["two"] == third["two"] == [[1, 2], 23, 1.5, 3]
    assert second["again"] == third["again"] == [[1, 2], 43, 1.5, 0]
    for each in (first, second, third):
        assert each["all"] == [[0, 1, 2], 3, 1.0, 0]
        assert (each["arrays"], each["tensors"], each["least"]) == ([3, 3], [[2.0]], 0)
        assert each["kinds"] == ["int", "float", "ndarray", "Tensor"]
        assert each["heard"] == {"rank": 1}
