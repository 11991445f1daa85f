"""A generative adversarial network for points on a circle."""

import torch
from torch import nn

NOISE, BATCH, STEPS = 4, 32, 25


def circle(count):
    angle = 2 * torch.pi * torch.rand(count, 1)
    return torch.cat([torch.cos(angle), torch.sin(angle)], dim=1)


criterion = nn.BCEWithLogitsLoss()


def make_networks():
    torch.manual_seed(15)
    generator = nn.Sequential(nn.Linear(NOISE, 16), nn.ReLU(), nn.Linear(16, 2))
    discriminator = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
    return generator, discriminator


def discriminator_step(generator, discriminator, optimizer, real):
    optimizer.zero_grad()
    fake = generator(torch.randn(len(real), NOISE)).detach()
    scores = torch.cat([discriminator(real), discriminator(fake)])
    target = torch.cat([torch.ones(len(real), 1), torch.zeros(len(real), 1)])
    loss = criterion(scores, target)
    loss.backward()
    optimizer.step()
    return loss.item()


def generator_step(generator, discriminator, optimizer):
    optimizer.zero_grad()
    loss = criterion(discriminator(generator(torch.randn(BATCH, NOISE))), torch.ones(BATCH, 1))
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    generator, discriminator = make_networks()
    generator_optimizer = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.999))
    discriminator_optimizer = torch.optim.Adam(discriminator.parameters(), lr=2e-3, betas=(0.5, 0.999))
    for step in range(STEPS):
        d_loss = discriminator_step(generator, discriminator, discriminator_optimizer, circle(BATCH))
        g_loss = generator_step(generator, discriminator, generator_optimizer)
        if step % 5 == 4:
            print(f"step {step + 1}: discriminator {d_loss:.4f}, generator {g_loss:.4f}")


if __name__ == "__main__":
    main()
