"""A small model that learns from a large one."""

import torch
from torch import nn

import pilotage

torch.manual_seed(0)
data = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randint(0, 3, (64,)))
loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)
teacher = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 3)).eval()
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def criterion(scores, labels, wanted):
    soft = nn.functional.kl_div((scores / 2).log_softmax(1), (wanted / 2).softmax(1), reduction="batchmean")
    return nn.functional.cross_entropy(scores, labels) + 4 * soft


step = pilotage.training(model, optimizer, loss=lambda scores, targets: criterion(scores, *targets))

for _epoch in range(2):
    for inputs, labels in loader:
        with torch.no_grad():
            wanted = teacher(inputs)
        _, loss = step(inputs, (labels, wanted))
