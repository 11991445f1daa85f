"""Sorts records by a hidden rule; a trainer counts updates, and each takes four batches."""

import math

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import pilotage

CONFIG = {
    "width": 24,
    "rate": 0.02,
    "warmup": 4,
    "updates": 60,
    "batch": 8,
    "accumulate": 4,
    "clip": 1.0,
    "decay": 0.05,
}


class Records(Dataset):
    def __init__(self, count):
        generator = torch.Generator().manual_seed(610)
        self.values = torch.randn(count, 12, generator=generator)
        self.kinds = (self.values @ torch.randn(12, 3, generator=generator)).argmax(1)

    def __len__(self):
        return len(self.values)

    def __getitem__(self, number):
        return {"name": f"record {number}", "values": self.values[number], "kind": self.kinds[number]}


def collate(items):
    tensors = {key: torch.stack([item[key] for item in items]) for key in ("values", "kind")}
    return {"names": [item["name"] for item in items], **tensors}


def rate_at(update):
    if update < CONFIG["warmup"]:
        return (update + 1) / CONFIG["warmup"]
    return 0.5 * (1 + math.cos(math.pi * (update - CONFIG["warmup"]) / (CONFIG["updates"] - CONFIG["warmup"])))


def groups(model):
    matrices = [each for each in model.parameters() if each.dim() > 1]
    others = [each for each in model.parameters() if each.dim() <= 1]
    return [{"params": matrices, "weight_decay": CONFIG["decay"]}, {"params": others, "weight_decay": 0.0}]


def network():
    width = CONFIG["width"]
    return nn.Sequential(nn.Linear(12, width), nn.SiLU(), nn.LayerNorm(width), nn.Linear(width, 3))


class Trainer:
    def __init__(self, model):
        self.model, self.updates = model, 0
        self.optimizer = torch.optim.AdamW(groups(model), lr=CONFIG["rate"])
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, rate_at)
        self.step = pilotage.training(
            model,
            self.optimizer,
            loss=nn.CrossEntropyLoss(),
            gradient_accumulation=CONFIG["accumulate"],
            clip_grad_norm=CONFIG["clip"],
        )

    def fit(self, loader):
        while self.updates < CONFIG["updates"]:
            for batch in loader:
                _, loss = self.step(batch["values"], batch["kind"])
                self.schedule.step()
                self.updates += 1
            print(f"{self.updates} updates: {loss.item():.4f}")


def main():
    torch.manual_seed(611)
    trainer = Trainer(network())
    trainer.fit(DataLoader(Records(320), CONFIG["batch"] * CONFIG["accumulate"], shuffle=True, collate_fn=collate))
    torch.save({"model": trainer.model.state_dict(), "config": CONFIG}, "records.pt")


if __name__ == "__main__":
    main()
