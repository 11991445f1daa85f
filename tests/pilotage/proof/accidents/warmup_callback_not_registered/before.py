"""Learns to tell sine from square waves, with a warm-up of the learning rate."""

import torch
from torch import nn


class Callback:
    """What may happen around the steps of the trainer."""

    def on_step_end(self, trainer):
        pass

    def on_end(self, trainer):
        pass


class Schedule(Callback):
    """Moves the learning rate after each step."""

    def __init__(self, scheduler):
        self.scheduler = scheduler

    def on_step_end(self, trainer):
        self.scheduler.step()


class Report(Callback):
    def on_end(self, trainer):
        print(f"loss {trainer.losses[0]:.4f} -> {trainer.losses[-1]:.4f} in {len(trainer.losses)} steps")


class Trainer:
    def __init__(self, model, optimizer, callbacks):
        self.model, self.optimizer, self.callbacks = model, optimizer, callbacks
        self.losses = []

    def fit(self, batches):
        for waves, labels in batches:
            self.optimizer.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(self.model(waves), labels)
            loss.backward()
            self.optimizer.step()
            self.losses.append(loss.item())
            for callback in self.callbacks:
                callback.on_step_end(self)
        for callback in self.callbacks:
            callback.on_end(self)


def waves(steps, size=16):
    generator = torch.Generator().manual_seed(18)
    time = torch.linspace(0, 12, 24)
    for _ in range(steps):
        labels = torch.randint(2, (size, 1), generator=generator).float()
        sine = torch.sin(time + 6 * torch.rand(size, 1, generator=generator))
        yield torch.where(labels > 0, sine, sine.sign()), labels


if __name__ == "__main__":
    torch.manual_seed(20)
    model = nn.Sequential(nn.Linear(24, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 20))
    Trainer(model, optimizer, [Schedule(warmup), Report()]).fit(waves(40))
