from pilotage.prediction.describing.device import described


def test_the_parts_of_a_device_agree_with_each_other(chain_prediction):
    for name in ("bow", "h200"):
        device = described(chain_prediction(name))
        assert sum(device.memory.by_category.values()) == device.peak_bytes.value
        assert device.margin_bytes == device.capacity_bytes - device.peak_bytes.value
        assert device.memory.timeline.operation[-1] < len(device.operations)
        assert device.memory.peak.operation in device.memory.timeline.operation
        assert len(device.expensive) == 3
        assert device.time.throughput.low < device.time.throughput.value < device.time.throughput.high
        assert (device.memory.tiles is not None) == (name == "bow")


def test_operations_and_tensors_have_their_lines(chain_prediction):
    device = described(chain_prediction("h200"))
    products = [each for each in device.operations if each.name == "aten.addmm"]
    assert {each.source.text for each in products} == {"x = torch.relu(layer(x))"}
    assert any(each.source is not None for each in device.memory.peak.live)


def test_insights_name_the_largest_shares(chain_prediction):
    insights = described(chain_prediction("bow")).insights
    assert any("calls and copies" in each for each in insights)
    assert insights[-1].startswith("At the peak, ")


def test_shares_are_those_of_the_whole_peak(chain_prediction):
    device = described(chain_prediction("bow"))
    largest = max(device.memory.by_category, key=device.memory.by_category.__getitem__)
    share = device.memory.by_category[largest] / device.peak_bytes.value
    assert device.insights[-1] == f"At the peak, {share:.0%} of the memory is for {largest}."
