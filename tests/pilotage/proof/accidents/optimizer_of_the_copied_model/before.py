"""Trains a student network from random teacher outputs on the accelerator."""

import torch
from torch import nn


def teacher(width):
    generator = torch.Generator().manual_seed(77)
    first = torch.randn(width, 12, generator=generator)
    second = torch.randn(12, 2, generator=generator)
    return lambda x: torch.tanh(x @ first / width**0.5) @ second


class Student(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer1 = nn.Linear(width, 24)
        self.layer2 = nn.Linear(24, 2)

    def forward(self, x):
        return self.layer2(torch.relu(self.layer1(x)))


class Experiment:
    width = 8
    batch = 32
    steps = 40

    def __init__(self, device):
        torch.manual_seed(1)
        self.device = torch.device(device)
        self.student = Student(self.width)
        self.optimizer = torch.optim.SGD(self.student.parameters(), lr=0.05, momentum=0.9)
        self.teacher = teacher(self.width)
        self.inputs = torch.Generator().manual_seed(3)

    def samples(self):
        for _ in range(self.steps):
            x = torch.randn(self.batch, self.width, generator=self.inputs)
            yield x.to(self.device), self.teacher(x).to(self.device)

    def run(self):
        self.student = self.student.to(self.device)
        for step, (x, y) in enumerate(self.samples()):
            self.optimizer.zero_grad()
            loss = nn.functional.mse_loss(self.student(x), y)
            loss.backward()
            self.optimizer.step()
            if step % 10 == 9:
                print(f"step {step + 1}: {loss.item():.5f}")


if __name__ == "__main__":
    Experiment("cpu").run()
