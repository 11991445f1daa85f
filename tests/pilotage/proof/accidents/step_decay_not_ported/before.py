"""Predicts the flow of a river from the rain of the last days; the rate is divided by ten after each epoch."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Plan:
    days: int = 9
    rivers: int = 150
    batch: int = 10
    epochs: int = 3
    rate: float = 0.05
    decay: float = 0.1


def rivers(plan):
    rain = torch.rand(plan.rivers, plan.days).square()
    delay = torch.softmax(torch.linspace(0, 3, plan.days), dim=0)
    return TensorDataset(rain, (rain @ delay).unsqueeze(1))


def network(plan):
    return nn.Sequential(nn.Linear(plan.days, 18), nn.Softplus(), nn.Linear(18, 1))


class Training:
    def __init__(self, plan):
        self.plan = plan
        self.model = network(plan)
        self.criterion = nn.SmoothL1Loss()
        decayed = [p for p in self.model.parameters() if p.dim() > 1]
        others = [p for p in self.model.parameters() if p.dim() < 2]
        groups = [{"params": decayed, "weight_decay": 1e-3}, {"params": others}]
        self.optimizer = torch.optim.SGD(groups, lr=plan.rate, momentum=0.8)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, step_size=1, gamma=plan.decay)

    def step(self, rain, flow):
        self.optimizer.zero_grad()
        loss = self.criterion(self.model(rain), flow)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def run(self, loader):
        for epoch in range(self.plan.epochs):
            losses = [self.step(rain, flow) for rain, flow in loader]
            self.schedule.step()
            print(f"epoch {epoch}: {sum(losses) / len(losses):.6f}")


def main():
    torch.manual_seed(821)
    plan = Plan()
    training = Training(plan)
    training.run(DataLoader(rivers(plan), batch_size=plan.batch, shuffle=True))


if __name__ == "__main__":
    main()
