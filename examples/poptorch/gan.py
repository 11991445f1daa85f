"""A generative adversarial pair: two wrappers train the parts of one model alternately."""

import argparse

import torch
from torch import nn

import poptorch

NOISE, BATCH = 8, 64


def real_points(count: int) -> torch.Tensor:
    """Points on a ring."""
    angle = 6.28 * torch.rand(count)
    return torch.stack([angle.cos(), angle.sin()], 1) * (2 + 0.1 * torch.randn(count, 1))


def network(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, 48), nn.LeakyReLU(0.2), nn.Linear(48, 48), nn.LeakyReLU(0.2), nn.Linear(48, outputs)
    )


class CriticStep(nn.Module):
    """Trains the critic to tell real points from generated ones; the generator is fixed."""

    def __init__(self, generator: nn.Module, critic: nn.Module):
        super().__init__()
        self.generator, self.critic = generator, critic

    def forward(self, noise, points):
        with torch.no_grad():
            made = self.generator(noise)
        scores = self.critic(torch.cat([points, made]))
        wanted = torch.cat([torch.ones(len(points), 1), torch.zeros(len(made), 1)])
        return nn.functional.binary_cross_entropy_with_logits(scores, wanted)


class GeneratorStep(nn.Module):
    """Trains the generator to convince the critic, which is fixed."""

    def __init__(self, generator: nn.Module, critic: nn.Module):
        super().__init__()
        self.generator, self.critic = generator, critic

    def forward(self, noise):
        made = self.generator(noise)
        scores = self.critic(made)
        return made, nn.functional.binary_cross_entropy_with_logits(scores, torch.ones_like(scores))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=150)
    arguments = parser.parse_args()
    torch.manual_seed(5)
    generator, critic = network(NOISE, 2), network(2, 1)
    settings = {"lr": 2e-3, "betas": (0.5, 0.99)}
    teach_critic = poptorch.trainingModel(
        CriticStep(generator, critic), poptorch.Options(), poptorch.optim.Adam(critic.parameters(), **settings)
    )
    teach_generator = poptorch.trainingModel(
        GeneratorStep(generator, critic), poptorch.Options(), poptorch.optim.Adam(generator.parameters(), **settings)
    )
    # Each wrapper has its own weights on the device, so changes by the other one must be copied.
    for number in range(arguments.rounds):
        critic_loss = teach_critic(torch.randn(BATCH, NOISE), real_points(BATCH))
        if number:
            teach_generator.copyWeightsToDevice()
        _, generator_loss = teach_generator(torch.randn(BATCH, NOISE))
        teach_critic.copyWeightsToDevice()
        if number % 50 == 49:
            print(f"round {number + 1}: critic {critic_loss:.3f}, generator {generator_loss:.3f}")
    made = poptorch.inferenceModel(generator)(torch.randn(512, NOISE))
    print(f"distance of made points from the centre {made.norm(dim=1).mean():.2f}, of real ones 2.00")


if __name__ == "__main__":
    main()
