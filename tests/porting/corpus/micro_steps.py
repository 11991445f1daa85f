from contextlib import nullcontext
import torch
from torch import nn
from torch.nn import functional as F

gradient_accumulation_steps = 2
batch_size, block_size, max_iters, grad_clip = 4, 8, 6, 1.0
device = 'cuda' if torch.cuda.is_available() else 'cpu'
dtype = 'float32'
torch.manual_seed(1337)
device_type = 'cuda' if 'cuda' in device else 'cpu'
ptdtype = {'float32': torch.float32, 'bfloat16': torch.bfloat16, 'float16': torch.float16}[dtype]
ctx = nullcontext() if device_type == 'cpu' else torch.amp.autocast(device_type=device_type, dtype=ptdtype)
data = torch.randint(0, 12, (500,))


def get_batch():
    ix = torch.randint(len(data) - block_size, (batch_size,))
    x = torch.stack([data[i:i+block_size] for i in ix])
    y = torch.stack([data[i+1:i+1+block_size] for i in ix])
    if device_type == 'cuda':
        x, y = x.pin_memory().to(device, non_blocking=True), y.pin_memory().to(device, non_blocking=True)
    else:
        x, y = x.to(device), y.to(device)
    return x, y


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.h = nn.Embedding(12, 16), nn.Linear(16, 12)

    def forward(self, x, y):
        logits = self.h(self.e(x))
        return logits, F.cross_entropy(logits.view(-1, 12), y.view(-1))


model = LM()
model.to(device)
scaler = torch.cuda.amp.GradScaler(enabled=(dtype == 'float16'))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
X, Y = get_batch()
for iter_num in range(max_iters):
    for micro_step in range(gradient_accumulation_steps):
        with ctx:
            logits, loss = model(X, Y)
            loss = loss / gradient_accumulation_steps
        X, Y = get_batch()
        scaler.scale(loss).backward()
    if grad_clip != 0.0:
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    print(iter_num, loss.item())
