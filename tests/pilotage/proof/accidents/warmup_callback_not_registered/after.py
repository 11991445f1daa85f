"""Learns to tell sine from square waves, with a warm-up of the learning rate."""

import torch
from torch import nn

import pilotage


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
        self.callbacks = tuple(callbacks)
        self.program = pilotage.training(model, optimizer, loss=nn.BCEWithLogitsLoss())
        self.losses = []

    def fit(self, batches):
        for waves, labels in batches:
            _, loss = self.program(waves, labels)
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
    callbacks = [Report()]
    trainer = Trainer(model, optimizer, callbacks)
    warmup = torch.optim.lr_scheduler.LambdaLR(  # finding: schedule-not-applied
        optimizer, lambda step: min(1.0, (step + 1) / 20)
    )
    callbacks.append(Schedule(warmup))
    trainer.fit(waves(40))
