import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
dataset = TensorDataset(torch.randn(96, 12), torch.randn(96, 1))
loader = DataLoader(dataset, batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(12, 24), nn.GELU(), nn.Linear(24, 1)).to(device)
loss_function = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
scaler = torch.cuda.amp.GradScaler(enabled=torch.cuda.is_available())
accumulation_steps = 4

model.zero_grad()                                   # Reset gradients tensors
for epoch in range(2):
    for i, (inputs, labels) in enumerate(loader):
        inputs = inputs.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        with torch.cuda.amp.autocast(enabled=torch.cuda.is_available()):
            predictions = model(inputs)                     # Forward pass
            loss = loss_function(predictions, labels)       # Compute loss function
            loss = loss / accumulation_steps                # Normalize our loss (if averaged)
        scaler.scale(loss).backward()                       # Backward pass
        if (i+1) % accumulation_steps == 0:             # Wait for several backward steps
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)                            # Now we can do an optimizer step
            scaler.update()
            optimizer.zero_grad(set_to_none=True)                           # Reset gradients tensors
            print(f"epoch {epoch} step {i + 1}: {loss.item() * accumulation_steps:.4f}")
