# Old habits: Variable, .cuda() everywhere, loss.data[0]-like reads and model.cuda() without assignment.
import torch
import torch.nn as nn
import torch.optim as optim
from torch.autograd import Variable

torch.manual_seed(89)
use_gpu = torch.cuda.is_available()

train_x = torch.randn(64, 1, 9)
train_y = (train_x.sum((1, 2)) > 0).long()
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(train_x, train_y), batch_size=8, shuffle=True)


class CNN(nn.Module):
    def __init__(self):
        super(CNN, self).__init__()
        self.conv = nn.Conv1d(1, 4, 3)
        self.fc = nn.Linear(4 * 7, 2)

    def forward(self, x):
        out = nn.functional.relu(self.conv(x))
        out = out.view(out.size(0), -1)
        return self.fc(out)


cnn = CNN()
if use_gpu:
    cnn.cuda()

criterion = nn.CrossEntropyLoss()
optimizer = optim.Adam(cnn.parameters(), lr=0.005)

for epoch in range(2):
    for i, (images, labels) in enumerate(loader):
        if use_gpu:
            images = Variable(images.cuda())
            labels = Variable(labels.cuda())
        else:
            images = Variable(images)
            labels = Variable(labels)

        optimizer.zero_grad()
        outputs = cnn(images)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()

        if (i + 1) % 4 == 0:
            print('Epoch [%d/%d], Iter [%d/%d] Loss: %.4f' % (epoch + 1, 2, i + 1, len(loader), loss.data.item()))

torch.save(cnn.state_dict(), 'cnn.pkl')
