"""A variational autoencoder of 6 x 6 crosses and bars."""

import torch
from torch import nn
from torch.utils.data import TensorDataset

import poptorch

PIXELS, LATENT = 36, 4
BETA = 0.5


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(PIXELS, 24)
        self.mean = nn.Linear(24, LATENT)
        self.log_variance = nn.Linear(24, LATENT)
        self.decoder = nn.Sequential(nn.Linear(LATENT, 24), nn.ReLU(), nn.Linear(24, PIXELS))

    def forward(self, images):
        hidden = torch.relu(self.encoder(images))
        mean, log_variance = self.mean(hidden), self.log_variance(hidden)
        latent = mean + torch.randn_like(mean) * torch.exp(0.5 * log_variance)
        restored = self.decoder(latent)
        reconstruction = nn.functional.mse_loss(restored, images)  # finding: loss-root-differs
        divergence = -0.5 * (1 + log_variance - mean.pow(2) - log_variance.exp()).mean()
        return restored, reconstruction + BETA * divergence


def crosses(count):
    images = torch.zeros(count, 6, 6)
    for number, image in enumerate(images):
        image[number % 6] = 1.0
        image[:, number // 6 % 6] = 1.0
    return (images + 0.05 * torch.randn(count, 6, 6)).flatten(1)


torch.manual_seed(8)
data = TensorDataset(crosses(180))
model = Vae()
options = poptorch.Options()
optimizer = poptorch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
loader = poptorch.DataLoader(options, data, batch_size=12)
training_model = poptorch.trainingModel(model, options, optimizer)

for epoch in range(3):
    losses = []
    for (images,) in loader:
        _, loss = training_model(images)
        losses.append(loss.item())
    print(f"epoch {epoch}: loss {sum(losses) / len(losses):.4f}")

training_model.detachFromDevice()
with torch.no_grad():
    samples = model.decoder(torch.randn(2, LATENT))
print(f"two samples with means {samples.mean(1).tolist()}")
