import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split


class LitClassifier(nn.Module):
    def __init__(self, hidden=16, lr=1e-2):
        super().__init__()
        self.hparams = dict(hidden=hidden, lr=lr)
        self.l1 = nn.Linear(6, hidden)
        self.l2 = nn.Linear(hidden, 2)

    def forward(self, x):
        return self.l2(torch.relu(self.l1(x)))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        return {"val_loss": F.cross_entropy(logits, y), "acc": (logits.argmax(-1) == y).float().mean()}

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams["lr"])


def fit(model, train_loader, val_loader, max_epochs=2, device="cuda"):
    model.to(device)
    optimizer = model.configure_optimizers()
    for epoch in range(max_epochs):
        model.train()
        for batch_idx, batch in enumerate(train_loader):
            batch = [t.to(device) for t in batch]
            loss = model.training_step(batch, batch_idx)  # the number is not used
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        outs = []
        with torch.no_grad():
            for batch_idx, batch in enumerate(val_loader):
                batch = [t.to(device) for t in batch]
                outs.append(model.validation_step(batch, batch_idx))
        print(epoch, loss.item(), sum(o["acc"] for o in outs) / len(outs))


if __name__ == "__main__":
    torch.manual_seed(12)
    x = torch.randn(80, 6)
    data = TensorDataset(x, (x.sum(1) > 0).long())
    train, val = random_split(data, [64, 16])
    fit(LitClassifier(), DataLoader(train, 8, shuffle=True), DataLoader(val, 8),
        device="cuda" if torch.cuda.is_available() else "cpu")
