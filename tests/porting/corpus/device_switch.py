"""The device is chosen on the command line, in one of several ways."""
import argparse

import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset


def get_args():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto", help="where to train")
    parser.add_argument("--gpu-id", type=int, default=0)
    parser.add_argument("--optimizer", choices=["sgd", "adam"], default="sgd")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=16)
    return parser.parse_args()


def pick_device(args):
    if args.device == "cpu":
        return torch.device("cpu")
    if torch.cuda.is_available():
        torch.cuda.set_device(args.gpu_id)
        return torch.device("cuda", args.gpu_id)
    return torch.device("cpu")


def main():
    args = get_args()
    torch.manual_seed(83)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(83)
    device = pick_device(args)
    x = torch.randn(80, 6)
    loader = DataLoader(TensorDataset(x, (x[:, 0] > x[:, 1]).long()), batch_size=args.batch_size, shuffle=True,
                        pin_memory=device.type == "cuda")
    model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 2)).to(device)
    criterion = nn.CrossEntropyLoss().to(device)
    if args.optimizer == "sgd":
        optimizer = optim.SGD(model.parameters(), lr=0.1)
    else:
        optimizer = optim.Adam(model.parameters(), lr=0.01)

    for epoch in range(args.epochs):
        for inputs, labels in loader:
            inputs = inputs.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            optimizer.zero_grad()
            outputs = model(inputs)
            loss = criterion(outputs, labels)
            loss.backward()
            optimizer.step()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
            print("memory:", torch.cuda.max_memory_allocated())
        print(f"epoch {epoch}: {loss.item():.4f}")
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
