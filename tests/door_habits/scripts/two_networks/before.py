"""Two networks that train each other, with an optimizer each."""

import torch
from torch import nn

torch.manual_seed(0)
loader = torch.utils.data.DataLoader(torch.randn(64, 2) + 3, batch_size=16, shuffle=True)
maker = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
judge = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))
whole = nn.Sequential(maker, judge)
for_maker = torch.optim.Adam(maker.parameters(), lr=0.01)
for_judge = torch.optim.Adam(judge.parameters(), lr=0.01)
criterion = nn.BCEWithLogitsLoss()

for _epoch in range(2):
    for real in loader:
        noise, answers = torch.randn(16, 4), torch.cat([torch.ones(16, 1), torch.zeros(16, 1)])
        for_judge.zero_grad()
        loss = criterion(judge(torch.cat([real, maker(noise).detach()])), answers)
        loss.backward()
        for_judge.step()
        for_maker.zero_grad()
        loss = criterion(whole(noise), torch.ones(16, 1))
        loss.backward()
        for_maker.step()
