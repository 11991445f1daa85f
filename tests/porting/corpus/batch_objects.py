import time
from argparse import Namespace

import torch
import torch.optim as O
import torch.nn as nn

args = Namespace(batch_size=8, epochs=2, lr=0.01, dev_every=3, log_every=2, save_path='results', gpu=0, clip=5.0)
if torch.cuda.is_available():
    torch.cuda.set_device(args.gpu)
    device = torch.device('cuda:{}'.format(args.gpu))
elif torch.backends.mps.is_available():
    device = torch.device('mps')
else:
    device = torch.device('cpu')


class Batch:
    def __init__(self, premise, hypothesis, label):
        self.premise, self.hypothesis, self.label = premise, hypothesis, label
        self.batch_size = len(label)

    def to(self, device):
        return Batch(self.premise.to(device), self.hypothesis.to(device), self.label.to(device))


class BucketIterator:
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.batches = [Batch(torch.randint(0, 30, (5, 8), generator=g), torch.randint(0, 30, (5, 8), generator=g),
                              torch.randint(0, 3, (8,), generator=g)) for _ in range(n)]
        self.repeat = True

    def init_epoch(self):
        pass

    def __len__(self):
        return len(self.batches)

    def __iter__(self):
        return iter(self.batches)


class SNLIClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 12)
        self.out = nn.Sequential(nn.Linear(24, 16), nn.ReLU(), nn.Linear(16, 3))

    def forward(self, batch):
        prem_embed = self.embed(batch.premise).mean(0)
        hypo_embed = self.embed(batch.hypothesis).mean(0)
        return self.out(torch.cat([prem_embed, hypo_embed], 1))


torch.manual_seed(3)
train_iter, dev_iter = BucketIterator(6, 1), BucketIterator(2, 2)
model = SNLIClassifier()
model.to(device)

criterion = nn.CrossEntropyLoss()
opt = O.Adam(model.parameters(), lr=args.lr)

iterations = 0
start = time.time()
best_dev_acc = -1

for epoch in range(args.epochs):
    train_iter.init_epoch()
    n_correct, n_total = 0, 0
    for batch_idx, batch in enumerate(train_iter):

        # switch model to training mode, clear gradient accumulators
        model.train(); opt.zero_grad()

        iterations += 1
        batch = batch.to(device)

        answer = model(batch)  # forward pass

        # calculate accuracy of predictions in the current batch
        n_correct += (torch.max(answer, 1)[1].view(batch.label.size()) == batch.label).sum().item()
        n_total += batch.batch_size
        train_acc = 100. * n_correct/n_total

        # calculate loss of the network output with respect to training labels
        loss = criterion(answer, batch.label)

        # backpropagate and update optimizer learning rate
        loss.backward(); opt.step()

        # evaluate performance on validation set periodically
        if iterations % args.dev_every == 0:

            # switch model to evaluation mode
            model.eval()

            # calculate accuracy on validation set
            n_dev_correct, dev_loss = 0, 0
            with torch.no_grad():
                for dev_batch_idx, dev_batch in enumerate(dev_iter):
                     dev_batch = dev_batch.to(device)
                     answer = model(dev_batch)
                     n_dev_correct += (torch.max(answer, 1)[1].view(dev_batch.label.size()) == dev_batch.label).sum().item()
                     dev_loss = criterion(answer, dev_batch.label)
            print(iterations, loss.item(), dev_loss.item(), train_acc)

        elif iterations % args.log_every == 0:
            print(iterations, loss.item(), n_correct/n_total*100)
