"""A model that computes its own loss, as those of Hugging Face do."""

import torch
from torch import nn

import pilotage

torch.manual_seed(0)
data = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randint(0, 3, (64,)))
loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))

    def forward(self, inputs, labels):
        scores = self.layers(inputs)
        return {"loss": nn.functional.cross_entropy(scores, labels), "scores": scores}


model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
step = pilotage.training(model, optimizer)

for epoch in range(2):
    for inputs, labels in loader:
        outputs = step(inputs, labels)
    print(f"epoch {epoch}: {outputs['loss'].item():.4f}")
