import torch
import torch.nn as nn
from tqdm import tqdm

from generated import FashionMNIST


class ClassificationModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 5, 3)
        self.pool = nn.MaxPool2d(2, 2)
        self.conv2 = nn.Conv2d(5, 12, 5)
        self.norm = nn.GroupNorm(3, 12)
        self.fc1 = nn.Linear(972, 100)
        self.relu = nn.ReLU()
        self.fc2 = nn.Linear(100, 10)
        self.log_softmax = nn.LogSoftmax(dim=0)

    def forward(self, x):
        x = self.pool(self.relu(self.conv1(x)))
        x = self.norm(self.relu(self.conv2(x)))
        x = torch.flatten(x, start_dim=1)
        x = self.relu(self.fc1(x))
        x = self.log_softmax(self.fc2(x))

        return x


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

train_dataset = FashionMNIST("../datasets", train=True)
test_dataset = FashionMNIST("../datasets", train=False)
train_dataloader = torch.utils.data.DataLoader(train_dataset,
                                               batch_size=16,
                                               shuffle=True)
test_dataloader = torch.utils.data.DataLoader(test_dataset,
                                              batch_size=16)

model = ClassificationModel()
model.train()
model = model.to(device)
criterion = nn.NLLLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)

epochs = 2
for epoch in range(epochs):
    bar = tqdm(train_dataloader, desc="[Epoch {:02}]".format(epoch + 1))
    for data, labels in bar:
        data = data.to(device)
        labels = labels.to(device)

        optimizer.zero_grad()
        output = model(data)
        loss = criterion(output, labels)
        loss.backward()
        optimizer.step()
        bar.set_postfix({"Loss": loss.item()})

model.eval()
correct, total = 0, 0
with torch.no_grad():
    for data, labels in test_dataloader:
        data = data.to(device)
        labels = labels.to(device)
        output = model(data)
        correct += (output.argmax(dim=1) == labels).sum().item()
        total += labels.size(0)
print("Eval accuracy: {:.2f}%".format(100 * correct / total))
torch.save(model.state_dict(), "classifier.pth")
