import torch


def train_epoch(model, loader, criterion, optimizer, device):
    model.train()
    total = 0.0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        outputs = model(images)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()
        total += loss.item() * images.size(0)
    return total / len(loader.dataset)


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    right = 0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        right += (model(images).argmax(1) == labels).sum().item()
    return right / len(loader.dataset)
