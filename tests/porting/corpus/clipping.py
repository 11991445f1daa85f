import torch
import torch.nn as nn
import torch.nn.functional as F

# A recurrent network that adds two numbers digit by digit.
torch.manual_seed(23)
DEVICE = 'cuda' if torch.cuda.is_available() else 'cpu'
CLIP = 0.25


class Adder(nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.lstm = nn.LSTM(2, hidden)
        self.out = nn.Linear(hidden, 2)

    def forward(self, bits):
        hidden, _ = self.lstm(bits.transpose(0, 1))
        return self.out(hidden).permute(1, 2, 0)


def make(count, length=6):
    a, b = torch.randint(2 ** (length - 1), (2, count))
    places = torch.arange(length)
    bits = torch.stack([(a[:, None] >> places) & 1, (b[:, None] >> places) & 1], -1).float()
    return torch.utils.data.TensorDataset(bits, ((a + b)[:, None] >> places) & 1)


loader = torch.utils.data.DataLoader(make(96), batch_size=16, shuffle=True)
model = Adder().to(DEVICE)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for epoch in range(2):
    total = 0.
    for bits, answer in loader:
        bits, answer = bits.to(DEVICE), answer.to(DEVICE)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(bits), answer)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        total += loss.item()
    print('epoch', epoch, 'mean loss', total / len(loader))
