"""All cards of one machine, by DataParallel."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

input_size, output_size, batch_size, data_size = 5, 2, 16, 96
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
torch.manual_seed(47)


class RandomDataset(Dataset):
    def __init__(self, size, length):
        self.len = length
        self.data = torch.randn(length, size)

    def __getitem__(self, index):
        return self.data[index], self.data[index, :2]

    def __len__(self):
        return self.len


class Model(nn.Module):
    def __init__(self, input_size, output_size):
        super(Model, self).__init__()
        self.fc = nn.Linear(input_size, output_size)

    def forward(self, input):
        return self.fc(input)


loader = DataLoader(dataset=RandomDataset(input_size, data_size), batch_size=batch_size, shuffle=True)
model = Model(input_size, output_size)
if torch.cuda.device_count() > 1:
    print("Let's use", torch.cuda.device_count(), "GPUs!")
    model = nn.DataParallel(model)
model.to(device)

criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for input, target in loader:
        input = input.to(device)
        target = target.to(device)
        optimizer.zero_grad()
        output = model(input)
        loss = criterion(output, target)
        loss.backward()
        optimizer.step()
    print("Outside: input size", input.size(), "output_size", output.size())
torch.save(model.module.state_dict() if hasattr(model, "module") else model.state_dict(), "model.pt")
