"""Fine-tuning as in the scripts without a trainer: batches are dictionaries, the model returns its loss."""
import argparse
import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class SequenceClassifierOutput:
    loss: torch.Tensor
    logits: torch.Tensor


class TinyBertForSequenceClassification(nn.Module):
    def __init__(self, vocabulary=30, width=16, labels=2):
        super().__init__()
        self.embeddings = nn.Embedding(vocabulary, width)
        self.encoder = nn.TransformerEncoderLayer(width, 2, 32, dropout=0.0, batch_first=True)
        self.classifier = nn.Linear(width, labels)

    def forward(self, input_ids, attention_mask=None, labels=None):
        hidden = self.encoder(self.embeddings(input_ids))
        if attention_mask is not None:
            hidden = hidden * attention_mask.unsqueeze(-1)
        logits = self.classifier(hidden.mean(1))
        loss = None
        if labels is not None:
            loss = nn.functional.cross_entropy(logits, labels)
        return SequenceClassifierOutput(loss=loss, logits=logits)


class Sentences(Dataset):
    def __init__(self, count):
        self.ids = torch.randint(30, (count, 7))

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        ids = self.ids[index]
        return {"input_ids": ids, "attention_mask": torch.ones(7), "labels": (ids.sum() % 2)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--learning_rate", type=float, default=5e-3)
    parser.add_argument("--num_train_epochs", type=int, default=2)
    parser.add_argument("--per_device_train_batch_size", type=int, default=8)
    parser.add_argument("--num_warmup_steps", type=int, default=4)
    args = parser.parse_args()

    torch.manual_seed(61)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_dataloader = DataLoader(Sentences(64), shuffle=True, batch_size=args.per_device_train_batch_size)
    eval_dataloader = DataLoader(Sentences(32), batch_size=args.per_device_train_batch_size)
    model = TinyBertForSequenceClassification()
    model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate)
    max_train_steps = args.num_train_epochs * len(train_dataloader)

    def linear(step):
        if step < args.num_warmup_steps:
            return step / max(1, args.num_warmup_steps)
        return max(0.0, (max_train_steps - step) / max(1, max_train_steps - args.num_warmup_steps))

    lr_scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, linear)
    for epoch in range(args.num_train_epochs):
        model.train()
        for step, batch in enumerate(train_dataloader):
            batch = {k: v.to(device) for k, v in batch.items()}
            outputs = model(**batch)
            loss = outputs.loss
            loss.backward()
            optimizer.step()
            lr_scheduler.step()
            optimizer.zero_grad()
        model.eval()
        right = 0
        for batch in eval_dataloader:
            batch = {k: v.to(device) for k, v in batch.items()}
            with torch.no_grad():
                outputs = model(**batch)
            right += (outputs.logits.argmax(dim=-1) == batch["labels"]).sum().item()
        print(f"epoch {epoch}: perplexity {math.exp(loss.item()):.3f}, {right} of 32 right")


if __name__ == "__main__":
    main()
