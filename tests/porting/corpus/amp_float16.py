"""Mixed precision with a gradient scaler; on a machine without a card both are disabled."""
import torch
import torch.nn as nn
from torch.cuda.amp import GradScaler, autocast
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(11)
use_amp = torch.cuda.is_available()
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

inputs = torch.randn(96, 12)
targets = inputs @ torch.randn(12, 3)
loader = DataLoader(TensorDataset(inputs, targets), batch_size=16, shuffle=True, pin_memory=torch.cuda.is_available())

net = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 3)).to(device)
loss_fn = nn.MSELoss().to(device)
opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
scaler = GradScaler(enabled=use_amp)

for epoch in range(2):
    for input, target in loader:
        input = input.to(device, non_blocking=True)
        target = target.to(device, non_blocking=True)
        with autocast(enabled=use_amp):
            output = net(input)
            loss = loss_fn(output, target)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        opt.zero_grad(set_to_none=True)
    print(f"epoch {epoch}: {loss.item():.4f}")
