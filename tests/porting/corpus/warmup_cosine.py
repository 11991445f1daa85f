"""Linear warm-up, then a cosine, by LambdaLR; and parameters without weight decay."""
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(2)
device = "cuda" if torch.cuda.is_available() else "cpu"
total_steps, warmup_steps = 16, 4


def rate(step):
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    progress = (step - warmup_steps) / (total_steps - warmup_steps)
    return 0.5 * (1.0 + math.cos(math.pi * progress))


class Encoder(nn.Module):
    def __init__(self, vocabulary=20, width=16, classes=4):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, tokens):
        states = self.embedding(tokens)
        attended, _ = self.attention(states, states, states, need_weights=False)
        return self.head(self.norm(states + attended).mean(1))


tokens = torch.randint(20, (64, 6))
labels = tokens.sum(1) % 4
loader = DataLoader(TensorDataset(tokens, labels), batch_size=8, shuffle=True)

model = Encoder().to(device)
decay = [p for name, p in model.named_parameters() if p.dim() >= 2]
no_decay = [p for name, p in model.named_parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW(
    [{"params": decay, "weight_decay": 0.1}, {"params": no_decay, "weight_decay": 0.0}], lr=1e-2
)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
loss_fn = nn.CrossEntropyLoss(label_smoothing=0.1)

step = 0
model.train()
while step < total_steps:
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        loss = loss_fn(model(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        scheduler.step()
        step += 1
    print(f"step {step}: {loss.item():.4f}")
