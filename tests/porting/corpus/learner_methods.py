"""Another habit of classes: one method for each part of a step, and subclasses that replace some."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class BaseLearner:
    lr = 0.05

    def __init__(self, net, loader):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.net = net.to(self.device)
        self.loader = loader
        self.opt = self.configure_optimizers()

    def configure_optimizers(self):
        return torch.optim.SGD(self.net.parameters(), lr=self.lr)

    def compute_loss(self, output, target):
        raise NotImplementedError

    def training_step(self, batch):
        inputs, target = batch
        inputs = inputs.to(self.device)
        target = target.to(self.device)
        output = self.net(inputs)
        return self.compute_loss(output, target)

    def run(self, epochs):
        self.net.train()
        for epoch in range(epochs):
            for batch in self.loader:
                self.opt.zero_grad()
                loss = self.training_step(batch)
                loss.backward()
                self.opt.step()
            print(epoch, loss.item())


class Ranker(BaseLearner):
    def compute_loss(self, output, target):
        return F.huber_loss(output.squeeze(1), target, delta=0.5)


def main():
    torch.manual_seed(59)
    x = torch.randn(64, 6)
    loader = DataLoader(TensorDataset(x, x.norm(dim=1)), batch_size=8, shuffle=True)
    Ranker(nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1)), loader).run(2)


if __name__ == "__main__":
    main()
