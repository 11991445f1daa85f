#!/usr/bin/env python3
"""Image classification in the manner of the large training scripts: factories, meters, saver, schedule."""
import argparse
import logging
import time
from collections import OrderedDict

import torch
import torch.nn as nn

from factory import create_dataset, create_loader, create_model, create_optimizer, create_scheduler
from tools import AverageMeter, CheckpointSaver, accuracy, random_seed

_logger = logging.getLogger('train')

parser = argparse.ArgumentParser(description='PyTorch Image Training')
parser.add_argument('--model', default='tiny', type=str, metavar='MODEL')
parser.add_argument('--num-classes', type=int, default=3, metavar='N')
parser.add_argument('-b', '--batch-size', type=int, default=8, metavar='N')
parser.add_argument('--opt', default='sgd', type=str, metavar='OPTIMIZER')
parser.add_argument('--momentum', type=float, default=0.9, metavar='M')
parser.add_argument('--weight-decay', type=float, default=2e-5)
parser.add_argument('--lr', type=float, default=0.05, metavar='LR')
parser.add_argument('--epochs', type=int, default=2, metavar='N')
parser.add_argument('--smoothing', type=float, default=0.1)
parser.add_argument('--seed', type=int, default=42, metavar='S')
parser.add_argument('--log-interval', type=int, default=4, metavar='N')
parser.add_argument('--output', default='', type=str, metavar='PATH')


def main():
    logging.basicConfig(level=logging.INFO, format='%(message)s')
    args = parser.parse_args()
    device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
    if torch.cuda.is_available():
        torch.backends.cuda.matmul.allow_tf32 = True
        torch.backends.cudnn.benchmark = True
    random_seed(args.seed)

    model = create_model(args.model, num_classes=args.num_classes)
    _logger.info(f'Model {args.model} created, param count:{sum([m.numel() for m in model.parameters()])}')
    model.to(device=device)

    optimizer = create_optimizer(args, model)
    lr_scheduler = create_scheduler(args, optimizer)

    loader_train = create_loader(create_dataset('train'), batch_size=args.batch_size, is_training=True)
    loader_eval = create_loader(create_dataset('validation'), batch_size=args.batch_size)

    train_loss_fn = nn.CrossEntropyLoss(label_smoothing=args.smoothing).to(device=device)
    validate_loss_fn = nn.CrossEntropyLoss().to(device=device)
    saver = CheckpointSaver(model, optimizer, args.output)

    for epoch in range(args.epochs):
        train_metrics = train_one_epoch(epoch, model, loader_train, optimizer, train_loss_fn, args, device=device)
        eval_metrics = validate(model, loader_eval, validate_loss_fn, args, device=device)
        saver.save_checkpoint(epoch, eval_metrics['top1'])
        if lr_scheduler is not None:
            # step LR for next epoch
            lr_scheduler.step()
        _logger.info(f'*** epoch {epoch}: {train_metrics} {eval_metrics}')


def train_one_epoch(epoch, model, loader, optimizer, loss_fn, args, device=torch.device('cuda')):
    data_time_m = AverageMeter()
    losses_m = AverageMeter()
    model.train()

    end = time.time()
    for batch_idx, (input, target) in enumerate(loader):
        input, target = input.to(device), target.to(device)
        data_time_m.update(time.time() - end)

        output = model(input)
        loss = loss_fn(output, target)

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        losses_m.update(loss.item(), input.size(0))
        if batch_idx % args.log_interval == 0:
            lrl = [param_group['lr'] for param_group in optimizer.param_groups]
            lr = sum(lrl) / len(lrl)
            _logger.info(f'Train: {epoch} [{batch_idx:>4d}/{len(loader)}]  Loss: {losses_m.avg:#.3g}  LR: {lr:.3e}')
        end = time.time()

    return OrderedDict([('loss', losses_m.avg)])


def validate(model, loader, loss_fn, args, device=torch.device('cuda')):
    losses_m = AverageMeter()
    top1_m = AverageMeter()
    model.eval()

    with torch.no_grad():
        for batch_idx, (input, target) in enumerate(loader):
            input = input.to(device)
            target = target.to(device)
            output = model(input)
            if isinstance(output, (tuple, list)):
                output = output[0]
            loss = loss_fn(output, target)
            acc1, = accuracy(output, target, topk=(1,))
            losses_m.update(loss.item(), input.size(0))
            top1_m.update(acc1.item(), output.size(0))

    return OrderedDict([('loss', losses_m.avg), ('top1', top1_m.avg)])


if __name__ == '__main__':
    main()
