from pilotage.prediction.splitting.units import assigned_stages, units_of
from pilotage.prediction.trace.operations import Phase


def test_parts_follow_forward_and_have_all_of_the_time_and_state(chain_prediction):
    prediction = chain_prediction("bow")
    units = units_of(prediction, 2)
    assert [each.module for each in units if each.module] == [f"layers.{place}" for place in range(4)]
    assert all(each.module for each in units[1:])
    assert [each.first for each in units] == sorted(each.first for each in units)
    operations = prediction.traced.update.operations
    whole = sum(
        cost.seconds for cost, each in zip(prediction.costs, operations, strict=True) if each.phase is not Phase.UPDATE
    )
    assert abs(sum(each.seconds for each in units) - whole) < 1e-12
    assert sum(each.state for each in units) == sum(
        each.bytes for each in prediction.traced.update.tensors if each.is_stored
    )


def test_backward_belongs_to_the_stage_of_its_forward(chain_prediction):
    prediction = chain_prediction("bow")
    units = units_of(prediction, 2)
    boundary = next(each.first for each in units if each.module == "layers.2")
    stages = assigned_stages(prediction, [boundary])
    operations = prediction.traced.update.operations
    for module, expected in (("layers.0", 0), ("layers.1", 0), ("layers.2", 1), ("layers.3", 1)):
        found = {stage for each, stage in zip(operations, stages, strict=True) if each.module == module}
        assert found == {expected}
    assert {stage for each, stage in zip(operations, stages, strict=True) if each.phase is Phase.UPDATE} == {None}
