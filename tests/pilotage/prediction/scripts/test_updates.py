from pilotage.prediction.prediction import Traced
from pilotage.prediction.scripts.running import find
from pilotage.prediction.scripts.updates import UpdateWatch
from pilotage.prediction.trace.operations import Category, Phase

MODEL = """
import sys, torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rates = [each.item() for each in torch.linspace(0, 0.1, 4)]
        self.wide = nn.Linear(64, 512)
        self.narrow = nn.Linear(512, 4)

    def forward(self, x, y=None):
        scores = self.narrow(torch.relu(self.wide(x)))
        return scores if y is None else (scores, nn.functional.cross_entropy(scores, y))

size = int(sys.argv[1]) if len(sys.argv) > 1 else 8
data = torch.utils.data.TensorDataset(torch.randn(64, 64), torch.randint(0, 4, (64,)))
"""
PLAIN = (
    MODEL
    + """
model = Net()
model.to("cpu")
optimizer = torch.optim.Adam(model.parameters())
losses = []
for x, y in torch.utils.data.DataLoader(data, batch_size=size, shuffle=True):
    optimizer.zero_grad()
    _, loss = model(x, y)
    losses.append(loss.item())
    loss.backward()
    optimizer.step()
raise AssertionError("the script went on")
"""
)


def test_a_plain_script_ends_after_its_first_update(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(PLAIN)
    result = find(str(path))
    trace = result.what
    assert isinstance(trace, Traced)
    assert trace.eager
    assert trace.samples == 8
    assert result.values_read == 1
    phases = [each.phase for each in trace.update.operations]
    assert {*phases} == {*Phase}
    products = [each for each in trace.update.operations if each.name in ("aten.addmm", "aten.mm")]
    assert {each.module for each in products if each.phase is Phase.FORWARD} == {"wide", "narrow"}
    assert sum(each.work.flops for each in products) == 2 * 8 * (2 * 64 * 512 + 3 * 512 * 4)
    weights = 4 * (64 * 512 + 512 + 512 * 4 + 4)
    sizes = dict.fromkeys(Category, 0)
    for tensor in trace.update.tensors:
        sizes[tensor.category] += tensor.bytes
    assert sizes[Category.WEIGHTS] == weights
    assert sizes[Category.GRADIENTS] == weights
    assert 2 * weights <= sizes[Category.OPTIMIZER] <= 2 * weights + 64
    assert sizes[Category.ACTIVATIONS] >= 8 * 512 * 4


def test_nothing_is_recorded_before_a_module_is_trained():
    watch = UpdateWatch("script")
    with watch.watching():
        watch.observe(None, (), {}, None)
