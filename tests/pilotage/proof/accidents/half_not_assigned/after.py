"""Denoises one-dimensional signals with a small autoencoder, in half precision."""

import torch
from torch import nn
from torch.utils.data import TensorDataset

import poptorch

WIDTH = 32


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(WIDTH, 12)
        self.decoder = nn.Linear(12, WIDTH)
        self.loss = nn.MSELoss()

    def forward(self, noisy, clean):
        restored = self.decoder(torch.tanh(self.encoder(noisy)))
        return restored, self.loss(restored, clean)


def signals(count):
    phase = 6.28 * torch.rand(count, 1)
    clean = torch.sin(torch.linspace(0, 6.28, WIDTH) + phase)
    return clean + 0.1 * torch.randn(count, WIDTH), clean


def main():
    torch.manual_seed(17)
    noisy, clean = signals(192)
    model = Denoiser()
    # The weights stay in single precision; the program casts them to the type of its inputs.
    for signal in (noisy, clean):
        signal.half()  # finding: precision-not-as-asked
    options = poptorch.Options()
    loader = poptorch.DataLoader(options, TensorDataset(noisy, clean), batch_size=16)
    optimizer = poptorch.optim.SGD(model.parameters(), lr=0.1)
    training = poptorch.trainingModel(model, options, optimizer)

    history = []
    for _ in range(3):
        for batch, target in loader:
            _, loss = training(batch, target)
            history.append(loss.item())
    print(f"first loss {history[0]:.4f}, last loss {history[-1]:.4f} after {len(history)} steps")

    training.detachFromDevice()
    restored, _ = model(noisy[:4], clean[:4])
    print(f"largest error of four signals: {(restored - clean[:4]).abs().max().item():.3f}")


if __name__ == "__main__":
    main()
