"""Only the recurrent part is clipped."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(93)
device = "cuda" if torch.cuda.is_available() else "cpu"


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 8, batch_first=True)
        self.out = nn.Linear(8, 2)

    def forward(self, x):
        return self.out(self.rnn(x)[0][:, -1])


x = torch.randn(64, 5, 3)
loader = DataLoader(TensorDataset(x, (x.sum((1, 2)) > 0).long()), batch_size=8, shuffle=True)
model = Tagger().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for x, y in loader:
    x, y = x.to(device), y.to(device)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    nn.utils.clip_grad_norm_(model.rnn.parameters(), 0.1)
    optimizer.step()
    print(loss.item())
