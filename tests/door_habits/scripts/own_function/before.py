"""An operation with a gradient of its own: signs whose gradient is passed straight through."""

import torch
from torch import nn

torch.manual_seed(0)
data = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randint(0, 3, (64,)))
loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)


class Sign(torch.autograd.Function):
    @staticmethod
    def forward(context, values):
        context.save_for_backward(values)
        return values.sign()

    @staticmethod
    def backward(context, gradient):
        (values,) = context.saved_tensors
        return gradient * (values.abs() <= 1)


class Binary(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 3)

    def forward(self, inputs):
        return self.second(Sign.apply(self.first(inputs)))


model = Binary()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
criterion = nn.CrossEntropyLoss()

for epoch in range(2):
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.4f}")
