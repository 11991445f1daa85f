"""Distils what a network knows of bird calls into another, and keeps a slow average of that; saves all three."""

import copy
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BANDS, BIRDS = 16, 6


def calls(count):
    birds = torch.randint(BIRDS, (count,))
    pitch = torch.rand(BIRDS, BANDS)
    return TensorDataset(pitch[birds] + 0.2 * torch.randn(count, BANDS), birds)


def listener():
    return nn.Sequential(nn.Linear(BANDS, 22), nn.SiLU(), nn.Linear(22, BIRDS))


class Distillation(nn.Module):
    """The student's loss: the names of the birds, and what the teacher says."""

    def __init__(self, teacher):
        super().__init__()
        self.teacher = copy.deepcopy(teacher).requires_grad_(False).eval()
        self.student = listener()

    def forward(self, call, bird):
        scores = self.student(call)
        told = self.teacher(call).softmax(dim=-1)
        named = nn.functional.cross_entropy(scores, bird)
        return scores, named + nn.functional.mse_loss(scores.softmax(dim=-1), told)


@torch.no_grad()
def follow(average, student, share=1e-4):
    for slow, fast in zip(average.parameters(), student.parameters(), strict=True):
        slow.lerp_(fast, share)


def distil(model, average, loader, epochs):
    optimizer = torch.optim.Adam(model.student.parameters(), lr=5e-3)
    for epoch in range(epochs):
        for call, bird in loader:
            optimizer.zero_grad()
            _, loss = model(call, bird)
            loss.backward()
            optimizer.step()
            follow(average, model.student)
        print(f"epoch {epoch}: {loss.item():.4f}")


def main():
    torch.manual_seed(831)
    model = Distillation(listener())
    average = copy.deepcopy(model.student)
    distil(model, average, DataLoader(calls(208), batch_size=16), epochs=3)
    folder = Path("birds")
    folder.mkdir(exist_ok=True)
    torch.save(model.teacher.state_dict(), folder / "teacher.pt")
    torch.save(average.state_dict(), folder / "average.pt")
    torch.save({"epoch": 3, "student": model.student.state_dict()}, folder / "student.pt")


if __name__ == "__main__":
    main()
