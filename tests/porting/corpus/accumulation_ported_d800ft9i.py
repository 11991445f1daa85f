"""Four small batches make one update."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class ModelWithLoss(nn.Module):
    """The model and its loss as one module, so that a training step is one call."""

    def __init__(self, model, criterion):
        super().__init__()
        self.model = model
        self.criterion = criterion

    def forward(self, x, y):
        predictions = self.model(x)
        loss = self.criterion(predictions, y)
        return predictions, loss


import poptorch

torch.manual_seed(17)
accumulation_steps = 4

points = torch.randn(128, 8)
labels = (points[:, 0] * points[:, 1] > 0).long()
options = poptorch.Options()
options.Training.gradientAccumulation(accumulation_steps)
options.outputMode(poptorch.OutputMode.All)
train_loader = poptorch.DataLoader(options, TensorDataset(points, labels), batch_size=4, shuffle=True, drop_last=True)

model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 2))
criterion = nn.CrossEntropyLoss()
optimizer = poptorch.optim.Adam(model.parameters(), lr=0.01)

model.train()
training_model = poptorch.trainingModel(ModelWithLoss(model, criterion), options=options, optimizer=optimizer)
for epoch in range(2):
    for i, (x, y) in enumerate(train_loader):
        predictions, loss = training_model(x, y)
        loss = loss.mean()
    print(f"epoch {epoch}: {accumulation_steps * loss.item():.4f}")

torch.save(model.state_dict(), "accumulated.pt")
