"""A small BERT-like encoder over four pipeline stages, trained to guess masked tokens."""

import argparse

import torch
from torch import nn

import poptorch

VOCABULARY, LENGTH, MASK = 32, 16, 0


def sentences(count: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Rising sequences of tokens, some of them masked: tokens, mask and original tokens."""
    start, step = torch.randint(1, 16, (count, 1)), torch.randint(1, 3, (count, 1))
    tokens = (start + step * torch.arange(LENGTH)) % (VOCABULARY - 1) + 1
    masked = torch.rand(count, LENGTH) < 0.2
    return tokens.masked_fill(masked, MASK), masked.float(), tokens


class Encoder(nn.Module):
    def __init__(self, width: int = 32, layers: int = 3):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.positions = nn.Parameter(0.02 * torch.randn(LENGTH, width))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True) for _ in range(layers)
        )
        self.head = nn.Linear(width, VOCABULARY)
        for number, layer in enumerate(self.layers):
            poptorch.BeginBlock(layer, f"layer {number}", ipu_id=number)
        poptorch.BeginBlock(self.head, "head", ipu_id=layers)

    def forward(self, tokens, masked, labels):
        with poptorch.Block("embedding", ipu_id=0):
            states = self.tokens(tokens) + self.positions
        for layer in self.layers:
            states = layer(states)
        scores = self.head(states)
        losses = nn.functional.cross_entropy(scores.transpose(1, 2), labels, reduction="none")
        loss = (losses * masked).sum() / masked.sum().clamp(min=1)
        right = ((scores.argmax(-1) == labels) * masked).sum() / masked.sum().clamp(min=1)
        return poptorch.identity_loss(loss, reduction="none"), right


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=60)
    arguments = parser.parse_args()

    options = poptorch.Options().randomSeed(7)
    options.setExecutionStrategy(poptorch.PipelinedExecution(poptorch.AutoStage.SameAsIpu))
    options.Training.gradientAccumulation(8)
    options.outputMode(poptorch.OutputMode.All)
    model = Encoder().train()
    print(poptorch.module_repr(model.layers[0]).splitlines()[0])
    optimizer = poptorch.optim.LAMB(model.parameters(), lr=0.02, weight_decay=0.01)
    training = poptorch.trainingModel(model, options, optimizer)
    for update in range(arguments.updates):
        loss, right = training(*sentences(8 * 16))
        if update % 20 == 0 or update == arguments.updates - 1:
            print(f"update {update + 1}: loss {loss.mean():.3f}, {right.mean():.0%} of masked tokens right")


if __name__ == "__main__":
    main()
