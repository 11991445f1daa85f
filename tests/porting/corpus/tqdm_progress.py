"""A progress bar with the loss, and accuracy counted while training."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from tqdm import tqdm


def accuracy(scores, labels):
    return (scores.argmax(dim=1) == labels).sum().item()


def main(epochs=2, batch_size=16):
    torch.manual_seed(71)
    device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
    x = torch.randn(96, 12)
    train_loader = DataLoader(TensorDataset(x, x[:, :3].argmax(1)), batch_size, shuffle=True, drop_last=True)
    network = nn.Sequential(nn.Linear(12, 24), nn.GELU(), nn.Linear(24, 3))
    network = network.to(device)
    loss_function = nn.CrossEntropyLoss()
    optimiser = torch.optim.SGD(params=network.parameters(), lr=0.1, momentum=0.8, weight_decay=1e-4)

    for epoch in range(epochs):
        network.train()
        right = seen = 0
        bar = tqdm(train_loader, total=len(train_loader), desc=f"epoch {epoch}", leave=False)
        for inputs, labels in bar:
            inputs, labels = inputs.to(device), labels.to(device)
            optimiser.zero_grad()
            scores = network(inputs)
            loss = loss_function(scores, labels)
            loss.backward()
            optimiser.step()
            right += accuracy(scores, labels)
            seen += labels.size(0)
            bar.set_postfix(loss=loss.item(), accuracy=right / seen)
    print(f"{right / seen:.1%}")


if __name__ == "__main__":
    main()
