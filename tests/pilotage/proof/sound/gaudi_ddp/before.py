"""Predicts the colour of a star from its spectrum."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CHANNELS = 24


def stars(count):
    """Planck's law in 24 channels, with noise."""
    generator = torch.Generator().manual_seed(360)
    temperature = 3 + 7 * torch.rand(count, 1, generator=generator)
    wavelength = torch.linspace(0.3, 1.0, CHANNELS)
    spectrum = wavelength**-5 / (torch.exp(14.4 / (wavelength * temperature)) - 1)
    spectrum = spectrum / spectrum.sum(1, keepdim=True)
    return TensorDataset(
        CHANNELS * spectrum + 0.05 * torch.randn(count, CHANNELS, generator=generator), temperature / 10
    )


class Star(nn.Module):
    """The temperature, in units of 10,000 kelvin."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(CHANNELS, 16), nn.SiLU(), nn.Linear(16, 1))

    def forward(self, spectrum):
        return self.layers(spectrum)


def train(device):
    torch.manual_seed(361)
    data = stars(320)
    model = Star().to(device)
    loader = DataLoader(data, batch_size=32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    for epoch in range(3):
        for spectrum, temperature in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(spectrum.to(device)), temperature.to(device))
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.5f}")


def main():
    train(torch.device("cpu"))


if __name__ == "__main__":
    main()
