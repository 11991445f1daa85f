import copy
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
device = torch.device('cuda:0' if torch.cuda.is_available() else 'cpu')
X = torch.randn(200, 10)
Y = (X @ torch.randn(10, 1)) + 0.1 * torch.randn(200, 1)
X, Y = X.to(device), Y.to(device)
Xtr, Ytr, Xva, Yva = X[:160], Y[:160], X[160:], Y[160:]

model = nn.Sequential(nn.Linear(10, 32), nn.SiLU(), nn.Linear(32, 1)).to(device)
opt = torch.optim.NAdam(model.parameters(), lr=5e-3)
sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.95)
batch_size, best, best_state, patience = 20, 1e9, None, 3
for epoch in range(3):
    model.train()
    perm = torch.randperm(len(Xtr))
    for start in range(0, len(Xtr), batch_size):
        idx = perm[start:start + batch_size]
        xb, yb = Xtr[idx], Ytr[idx]
        loss = F.mse_loss(model(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
    sched.step()
    model.eval()
    with torch.no_grad():
        val = F.mse_loss(model(Xva), Yva).item()
    if val < best:
        best, best_state, patience = val, copy.deepcopy(model.state_dict()), 3
    else:
        patience -= 1
        if patience == 0:
            break
    print(epoch, loss.item(), val)
model.load_state_dict(best_state)
