import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
import poptorch

torch.manual_seed(7)
batch_size = 8

images = torch.randn(160, 3, 8, 8)
classes = images.amax((2, 3)).argmax(1)
trainset = torch.utils.data.TensorDataset(images[:128], classes[:128])
testset = torch.utils.data.TensorDataset(images[128:], classes[128:])
options = poptorch.Options()
trainloader = poptorch.DataLoader(options, trainset, batch_size=batch_size,
                                          shuffle=True, num_workers=0, drop_last=True)
testloader = poptorch.DataLoader(options, testset, batch_size=batch_size,
                                         shuffle=False, num_workers=0, drop_last=False)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, 3)
        self.pool = nn.MaxPool2d(2, 2)
        self.fc1 = nn.Linear(6 * 3 * 3, 12)
        self.fc2 = nn.Linear(12, 3)

    def forward(self, x):
        x = self.pool(F.relu(self.conv1(x)))
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        x = self.fc2(x)
        return x


class ModelWithLoss(nn.Module):
    """The model and its loss as one module, so that a training step is one call."""

    def __init__(self, net, criterion):
        super().__init__()
        self.net = net
        self.criterion = criterion

    def forward(self, inputs, labels):
        outputs = self.net(inputs)
        loss = self.criterion(outputs, labels)
        return outputs, loss


net = Net()

criterion = nn.CrossEntropyLoss()
optimizer = poptorch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)

training_model = poptorch.trainingModel(ModelWithLoss(net, criterion), options=options, optimizer=optimizer)
for epoch in range(2):

    running_loss = 0.0
    for i, data in enumerate(trainloader, 0):
        # a batch is a list
        inputs, labels = data[0], data[1]

        # one update
        outputs, loss = training_model(inputs, labels)

        running_loss += loss.item()
        if i % 8 == 7:
            print(f'[{epoch + 1}, {i + 1:5d}] loss: {running_loss / 8:.3f}')
            running_loss = 0.0
    training_model.detachFromDevice()


PATH = './cifar_net.pth'
torch.save(net.state_dict(), PATH)

correct = 0
total = 0
inference_model = poptorch.inferenceModel(net)
with torch.no_grad():
    for data in testloader:
        images, labels = data
        outputs = inference_model(images) if len(images) == testloader.batch_size else net(images)
        _, predicted = torch.max(outputs, 1)
        total += labels.size(0)
        correct += (predicted == labels).sum().item()
    if inference_model.isAttachedToDevice():
        inference_model.detachFromDevice()

print(f'{correct} of {total} right')
