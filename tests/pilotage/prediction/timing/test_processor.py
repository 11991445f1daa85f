import pytest

from pilotage.prediction.devices import device_model
from pilotage.prediction.timing.processor import processor_cost
from pilotage.prediction.trace.work import Product, Work, WorkKind

CPU = device_model("cpu")


def test_arithmetic_or_traffic_decides_whichever_takes_longer():
    moved = Work(kind=WorkKind.ELEMENTWISE, flops=1, read=10**9, written=10**9)
    assert processor_cost(moved, CPU).compute == pytest.approx(2e9 / CPU.traffic.memory)
    part = Product(1, 2048, 2048, 2048)
    multiplied = Work(kind=WorkKind.PRODUCT, flops=part.flops, read=10**6, written=10**6, parts=(part,))
    rate = CPU.compute.float32 * CPU.compute.product_efficiency
    assert processor_cost(multiplied, CPU).compute == pytest.approx(part.flops / rate)
