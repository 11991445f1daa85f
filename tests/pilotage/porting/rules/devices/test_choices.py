from __future__ import annotations

from pathlib import Path

from pilotage.porting.driver import port_texts
from pilotage.porting.target import Target

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"


def ported(text: str) -> str:
    return port_texts({Path("script.py"): HEAD + text}, Target.PILOTAGE).files[0].after


def test_a_choice_between_devices_is_written_once():
    after = ported("""\
if args.cuda:
    device = torch.device("cuda")
elif args.mps:
    device = torch.device("mps")
else:
    device = torch.device("cpu")
print(device)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
""")
    assert 'device = torch.device("cpu")\nprint(device)\n' in after
    assert "args.mps" not in after


def test_a_device_that_the_joined_module_reads_stays():
    after = ported("""\
device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Linear(8, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    with torch.autocast(device_type=device):
        loss = F.mse_loss(model(x.to(device)), y)
    loss.backward()
    optimizer.step()
""")
    assert 'device = "cpu"\n' in after
    assert "torch.autocast(device_type=device)" in after
