"""Continues sine waves, with an optimizer that calls its closure several times in a step."""
import torch
import torch.nn as nn
import torch.optim as optim

torch.manual_seed(0)
phases = torch.rand(8, 1) * 6
wave = torch.sin(torch.arange(0, 12) * 0.5 + phases).double()
input, target = wave[:, :-1], wave[:, 1:]


class Sequence(nn.Module):
    def __init__(self):
        super(Sequence, self).__init__()
        self.lstm = nn.LSTM(1, 8, batch_first=True)
        self.linear = nn.Linear(8, 1)

    def forward(self, values):
        states, _ = self.lstm(values.unsqueeze(-1))
        return self.linear(states).squeeze(-1)


seq = Sequence().double()
criterion = nn.MSELoss()
optimizer = optim.LBFGS(seq.parameters(), lr=0.8, max_iter=5)
for i in range(3):
    print('STEP: ', i)

    def closure():
        optimizer.zero_grad()
        out = seq(input)
        loss = criterion(out, target)
        loss.backward()
        return loss

    optimizer.step(closure)
