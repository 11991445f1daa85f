import torch
from torch import nn, Tensor
from torch.utils.data import DataLoader, Dataset
from typing import Dict


class Faces(Dataset):
    def __init__(self, n: int = 60) -> None:
        self.x = torch.randn(n, 10, generator=torch.Generator().manual_seed(1))

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, i: int) -> Dict[str, Tensor]:
        x = self.x[i]
        return dict(image=x, age=x.sum().abs(), gender=(x[0] > 0).long(), name=f"face{i}")


class MultiHead(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(10, 24), nn.GELU())
        self.age, self.gender = nn.Linear(24, 1), nn.Linear(24, 2)

    def forward(self, x: Tensor) -> Dict[str, Tensor]:
        h = self.trunk(x)
        return {"age": self.age(h).squeeze(-1), "gender": self.gender(h)}


def run_epoch(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer | None = None, *, device="cpu") -> float:
    training = optimizer is not None
    model.train(training)
    total = 0.0
    with torch.set_grad_enabled(training):
        for batch in loader:
            image = batch["image"].to(device, non_blocking=True)
            age, gender = batch["age"].to(device), batch["gender"].to(device)
            out = model(image)
            losses = {
                "age": nn.functional.smooth_l1_loss(out["age"], age),
                "gender": nn.functional.cross_entropy(out["gender"], gender),
            }
            loss = sum(losses.values())
            if training:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() * image.size(0)
    return total / len(loader.dataset)


def main() -> None:
    torch.manual_seed(6)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    train, valid = DataLoader(Faces(), batch_size=12, shuffle=True), DataLoader(Faces(24), batch_size=12)
    model = MultiHead().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    best = float("inf")
    for epoch in range(2):
        tr = run_epoch(model, train, optimizer, device=device)
        va = run_epoch(model, valid, device=device)
        if va < best:
            best = va
            torch.save({"model": model.state_dict(), "epoch": epoch}, "best.pt")
        print(f"{epoch=} {tr=:.4f} {va=:.4f}")


if __name__ == "__main__":
    main()
