"""Pretraining of a tiny BERT (masked words and next sentences) with FusedLamb, in lazy mode and bfloat16."""

import json

import torch
from torch import nn
from torch.nn import functional

import habana_frameworks.torch.core as htcore
from habana_frameworks.torch.distributed.hccl import initialize_distributed_hpu
from habana_frameworks.torch.hpex.optimizers import FusedLamb

WORDS, LENGTH, SIZE = 48, 12, 32


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, SIZE), nn.Embedding(LENGTH, SIZE)
        layer = nn.TransformerEncoderLayer(SIZE, 4, 64, dropout=0.1, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.predict, self.follows = nn.Linear(SIZE, WORDS), nn.Linear(SIZE, 2)

    def forward(self, words):
        states = self.encoder(self.words(words) + self.places(torch.arange(LENGTH, device=words.device)))
        return self.predict(states), self.follows(states[:, 0])


def batch(generator):
    start = torch.randint(2, WORDS // 2, (16, 1), generator=generator)
    words = (start + torch.arange(LENGTH)) % (WORDS - 2) + 2
    follows = torch.randint(2, (16,), generator=generator)
    words[:, LENGTH // 2 :] = torch.where(
        follows[:, None] == 1, words[:, LENGTH // 2 :], words[:, LENGTH // 2 :].flip(1)
    )
    hidden = torch.rand(16, LENGTH, generator=generator) < 0.15
    return words.masked_fill(hidden, 1), words.masked_fill(~hidden, -100), follows


def main():
    world_size, _, local_rank = initialize_distributed_hpu()
    assert (world_size, local_rank) == (1, -1)  # as in the original, which then trains alone
    torch.manual_seed(6)
    generator, device = torch.Generator().manual_seed(7), torch.device("hpu")
    model = Bert().to(device)
    decayed = [each for each in model.parameters() if each.dim() > 1]
    others = [each for each in model.parameters() if each.dim() == 1]
    groups = [{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}]
    optimizer = FusedLamb(groups, lr=2e-2)
    losses = []
    for _ in range(30):
        total = 0.0
        for _ in range(2):  # accumulated
            words, masked, follows = (each.to(device) for each in batch(generator))
            with torch.autocast(device_type="hpu", dtype=torch.bfloat16):
                predicted, next_one = model(words)
                loss = functional.cross_entropy(predicted.flatten(0, 1), masked.flatten(), ignore_index=-100)
                loss = (loss + functional.cross_entropy(next_one, follows)) / 2
            loss.backward()
            htcore.mark_step()
            total += loss.item()
        optimizer.step()
        optimizer.zero_grad()
        htcore.mark_step()
        losses.append(total)
    print(json.dumps({"losses": losses, "type": str(predicted.dtype)}))


main()
