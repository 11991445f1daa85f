"""Encoder and decoder are clipped each by itself, as in sequence-to-sequence tutorials."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(92)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
x = torch.randn(64, 6)
loader = DataLoader(TensorDataset(x, x.flip(1)), batch_size=8, shuffle=True)
encoder, decoder = nn.Linear(6, 12).to(device), nn.Linear(12, 6).to(device)
criterion = nn.MSELoss()
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=0.01)
clip = 0.5
for epoch in range(2):
    for source, target in loader:
        source, target = source.to(device), target.to(device)
        optimizer.zero_grad()
        loss = criterion(decoder(torch.tanh(encoder(source))), target)
        loss.backward()
        nn.utils.clip_grad_norm_(encoder.parameters(), clip)
        nn.utils.clip_grad_norm_(decoder.parameters(), clip)
        optimizer.step()
    print(epoch, loss.item())
