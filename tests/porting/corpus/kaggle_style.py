import torch, random, os
import numpy as np
import torch.nn as nn
from torch.utils.data import Dataset, DataLoader

class CFG:
    seed = 2021
    epochs = 2
    bs = 16
    lr = 1e-3
    device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')

def seed_everything(seed):
    random.seed(seed); os.environ['PYTHONHASHSEED'] = str(seed)
    np.random.seed(seed); torch.manual_seed(seed)
    torch.cuda.manual_seed(seed)
    torch.backends.cudnn.deterministic = True

class TabularDataset(Dataset):
    def __init__(self, X, y): self.X, self.y = X, y
    def __len__(self): return len(self.X)
    def __getitem__(self, i): return torch.tensor(self.X[i], dtype=torch.float), torch.tensor(self.y[i], dtype=torch.float)

class Model(nn.Module):
    def __init__(self, num_features, hidden=24):
        super().__init__()
        self.bn = nn.BatchNorm1d(num_features)
        self.dense1 = nn.Linear(num_features, hidden); self.drop = nn.Dropout(0.2)
        self.dense2 = nn.Linear(hidden, 1)
    def forward(self, x):
        x = self.drop(torch.relu(self.dense1(self.bn(x))))
        return self.dense2(x)

def train_fn(dl, model, opt, loss_fn):
    model.train(); final_loss = 0
    for x, y in dl:
        x, y = x.to(CFG.device), y.to(CFG.device)
        opt.zero_grad()
        out = model(x).view(-1)
        loss = loss_fn(out, y)
        loss.backward(); opt.step()
        final_loss += loss.item()
    return final_loss / len(dl)

def valid_fn(dl, model, loss_fn):
    model.eval(); final_loss, preds = 0, []
    for x, y in dl:
        x, y = x.to(CFG.device), y.to(CFG.device)
        with torch.no_grad():
            out = model(x).view(-1)
        final_loss += loss_fn(out, y).item(); preds.append(out.sigmoid().detach().cpu().numpy())
    return final_loss / len(dl), np.concatenate(preds)

seed_everything(CFG.seed)
X = np.random.randn(160, 10); y = (X[:, 0] + X[:, 1] > 0).astype(np.float32)
oof = np.zeros(len(y))
for fold in range(2):
    valid = np.arange(len(y)) % 5 == fold
    model = Model(X.shape[1]); model.to(CFG.device)
    opt = torch.optim.Adam(model.parameters(), lr=CFG.lr, weight_decay=1e-5)
    tr = DataLoader(TabularDataset(X[~valid], y[~valid]), batch_size=CFG.bs, shuffle=True)
    va = DataLoader(TabularDataset(X[valid], y[valid]), batch_size=CFG.bs)
    for epoch in range(CFG.epochs):
        tl = train_fn(tr, model, opt, nn.BCEWithLogitsLoss())
        vl, oof[valid] = valid_fn(va, model, nn.BCEWithLogitsLoss())
        print(f'fold {fold} epoch {epoch} train {tl:.4f} valid {vl:.4f}')
    torch.save(model.state_dict(), f'fold{fold}.pth')
