import torch

from config import Config
from data import get_loaders
from engine import evaluate, train_epoch
from model import build_model


def main():
    config = Config()
    torch.manual_seed(config.seed)
    device = config.device
    train_loader, test_loader = get_loaders(config)
    model = build_model(config).to(device)
    criterion = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=config.lr, momentum=config.momentum)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=config.gamma)

    for epoch in range(config.epochs):
        train_loss = train_epoch(model, train_loader, criterion, optimizer, device)
        scheduler.step()
        accuracy = evaluate(model, test_loader, device)
        print(f"epoch {epoch}: loss {train_loss:.4f}, accuracy {accuracy:.2f}")
    torch.save(model.state_dict(), config.path)


if __name__ == "__main__":
    main()
