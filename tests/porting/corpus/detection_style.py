import math
import sys
import torch
from torch import nn


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Conv2d(3, 4, 3, padding=1)
        self.box, self.cls = nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, images, targets=None):
        h = self.backbone(torch.stack(images)).mean((2, 3))
        if self.training:
            return {
                "loss_box": nn.functional.l1_loss(self.box(h), torch.stack([t["boxes"] for t in targets])),
                "loss_cls": nn.functional.cross_entropy(self.cls(h), torch.stack([t["labels"] for t in targets])),
            }
        return [{"boxes": b, "labels": c.argmax()} for b, c in zip(self.box(h), self.cls(h))]


def collate_fn(batch):
    return tuple(zip(*batch))


class Pennies(torch.utils.data.Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        return torch.rand(3, 8, 8, generator=g), {"boxes": torch.rand(4, generator=g), "labels": torch.tensor(i % 3)}


def train_one_epoch(model, optimizer, data_loader, device, epoch, print_freq, scaler=None):
    model.train()
    lr_scheduler = None
    if epoch == 0:
        warmup_factor = 1.0 / 1000
        warmup_iters = min(1000, len(data_loader) - 1)
        lr_scheduler = torch.optim.lr_scheduler.LinearLR(
            optimizer, start_factor=warmup_factor, total_iters=warmup_iters
        )

    for images, targets in data_loader:
        images = list(image.to(device) for image in images)
        targets = [{k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in t.items()} for t in targets]
        with torch.cuda.amp.autocast(enabled=scaler is not None):
            loss_dict = model(images, targets)
            losses = sum(loss for loss in loss_dict.values())

        loss_value = losses.item()

        if not math.isfinite(loss_value):
            print(f"Loss is {loss_value}, stopping training")
            print(loss_dict)
            sys.exit(1)

        optimizer.zero_grad()
        if scaler is not None:
            scaler.scale(losses).backward()
            scaler.step(optimizer)
            scaler.update()
        else:
            losses.backward()
            optimizer.step()

        if lr_scheduler is not None:
            lr_scheduler.step()
        print(epoch, loss_value)


def main():
    torch.manual_seed(2)
    device = torch.device('cuda') if torch.cuda.is_available() else torch.device('cpu')
    data_loader = torch.utils.data.DataLoader(Pennies(), batch_size=4, shuffle=True, collate_fn=collate_fn)
    model = Detector()
    model.to(device)
    params = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(params, lr=0.005, momentum=0.9, weight_decay=0.0005)
    lr_scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.1)
    for epoch in range(2):
        train_one_epoch(model, optimizer, data_loader, device, epoch, print_freq=10)
        lr_scheduler.step()


main()
