"""A generative adversarial network for points on a spiral."""

import torch
from torch import nn

import habana_frameworks.torch.core as htcore

NOISE, BATCH, STEPS = 3, 24, 25


def spiral(count):
    angle = 3 * torch.pi * torch.rand(count, 1)
    return angle / 8 * torch.cat([torch.cos(angle), torch.sin(angle)], dim=1)


class Adversaries:
    def __init__(self, device):
        torch.manual_seed(400)
        self.device = device
        self.generator = nn.Sequential(nn.Linear(NOISE, 16), nn.ReLU(), nn.Linear(16, 2)).to(device)
        self.critic = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1)).to(device)
        self.generator_optimizer = torch.optim.Adam(self.generator.parameters(), lr=2e-3, betas=(0.5, 0.999))
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=2e-3, betas=(0.5, 0.999))
        self.criterion = nn.BCEWithLogitsLoss()

    def fake(self):
        return self.generator(torch.randn(BATCH, NOISE).to(self.device))

    def update(self, optimizer, loss):
        optimizer.zero_grad()
        loss.backward()
        htcore.mark_step()
        optimizer.step()
        htcore.mark_step()
        return loss.item()

    def critic_step(self, real):
        scores = torch.cat([self.critic(real.to(self.device)), self.critic(self.fake().detach())])
        target = (torch.arange(2 * BATCH) < BATCH).float().unsqueeze(1).to(self.device)
        return self.update(self.critic_optimizer, self.criterion(scores, target))

    def generator_step(self):
        scores = self.critic(self.fake())
        return self.update(self.generator_optimizer, self.criterion(scores, torch.ones(BATCH, 1).to(self.device)))


def main():
    adversaries = Adversaries(torch.device("hpu"))
    for step in range(1, STEPS + 1):
        critic, generator = adversaries.critic_step(spiral(BATCH)), adversaries.generator_step()
        if step % 5 == 0:
            print(f"step {step}: critic {critic:.4f}, generator {generator:.4f}")


if __name__ == "__main__":
    main()
