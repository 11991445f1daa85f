"""A trainer with train_step and validation_step."""
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
import pilotage


@dataclass
class TrainerConfig:
    max_epochs: int = 2
    batch_size: int = 16
    learning_rate: float = 3e-3
    device: str = "auto"


class Trainer:
    def __init__(self, config, model, train_dataset, valid_dataset=None):
        self.config = config
        if config.device == "auto":
            pass
        else:
            self.device = config.device
        self.model = model
        self.inference_model = pilotage.inference(self.model)
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=config.learning_rate)
        self.training_model = pilotage.training(self.model, self.optimizer, loss=self.criterion)
        self.train_loader = DataLoader(train_dataset, batch_size=config.batch_size, shuffle=True)
        self.valid_loader = DataLoader(valid_dataset, batch_size=config.batch_size)
        self.history = []

    def train_step(self, batch):
        self.model.train()
        x, y = batch
        logits, loss = self.training_model(x, y)
        return loss.item(), (logits.argmax(1) == y).float().mean().item()

    @torch.no_grad()
    def validation_step(self, batch):
        self.model.eval()
        x, y = batch
        logits = self.inference_model(x)
        return self.criterion(logits, y).item(), (logits.argmax(1) == y).float().mean().item()

    def fit(self):
        for epoch in range(self.config.max_epochs):
            train = [self.train_step(batch) for batch in self.train_loader]
            valid = [self.validation_step(batch) for batch in self.valid_loader]
            self.history.append((sum(l for l, _ in train) / len(train), sum(l for l, _ in valid) / len(valid)))
            print(f"epoch {epoch}: {self.history[-1]}")

    def save(self, path):
        torch.save(self.model.state_dict(), path)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 4))

    def forward(self, x):
        return self.net(x)


if __name__ == "__main__":
    torch.manual_seed(53)
    x = torch.randn(128, 8)
    y = x[:, :4].argmax(1)
    trainer = Trainer(TrainerConfig(), Classifier(), TensorDataset(x[:96], y[:96]), TensorDataset(x[96:], y[96:]))
    trainer.fit()
    trainer.save("trainer.pt")
