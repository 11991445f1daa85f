import torch
import torch.nn as nn
import torch.optim as optim
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, TensorDataset

_models = {}


def register_model(fn):
    _models[fn.__name__] = fn
    return fn


class ConvNormAct(nn.Module):
    def __init__(self, in_chs, out_chs, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(in_chs, out_chs, 3, stride, 1, bias=False)
        self.bn = nn.BatchNorm2d(out_chs)
        self.act = nn.SiLU(inplace=True)

    def forward(self, x):
        return self.act(self.bn(self.conv(x)))


class Tiny(nn.Module):
    def __init__(self, num_classes=3):
        super().__init__()
        self.stem = ConvNormAct(3, 4, stride=2)
        self.blocks = nn.Sequential(ConvNormAct(4, 8), ConvNormAct(8, 8))
        self.classifier = nn.Linear(8, num_classes)

    def forward_features(self, x):
        return self.blocks(self.stem(x))

    def forward(self, x):
        return self.classifier(self.forward_features(x).mean((2, 3)))


@register_model
def tiny(**kwargs):
    return Tiny(**kwargs)


def create_model(name, **kwargs):
    return _models[name](**kwargs)


def create_optimizer(args, model):
    if args.opt == 'sgd':
        return optim.SGD(model.parameters(), lr=args.lr, momentum=args.momentum, weight_decay=args.weight_decay,
                         nesterov=True)
    if args.opt == 'adamw':
        return optim.AdamW(model.parameters(), lr=args.lr, weight_decay=args.weight_decay)
    raise ValueError(args.opt)


def create_scheduler(args, optimizer):
    return CosineAnnealingLR(optimizer, T_max=args.epochs)


def create_dataset(split):
    generator = torch.Generator().manual_seed(len(split))
    images = torch.randn(64 if split == 'train' else 32, 3, 8, 8, generator=generator)
    return TensorDataset(images, images.mean((2, 3)).argmax(1))


def create_loader(dataset, batch_size, is_training=False):
    return DataLoader(dataset, batch_size=batch_size, shuffle=is_training, drop_last=is_training)
