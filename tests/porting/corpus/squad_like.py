import argparse
import logging
import torch
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

logger = logging.getLogger(__name__)


class BertForSequenceClassification(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embeddings = torch.nn.Embedding(50, 16)
        self.encoder = torch.nn.Linear(16, 16)
        self.LayerNorm = torch.nn.LayerNorm(16)
        self.classifier = torch.nn.Linear(16, 2)

    def forward(self, input_ids, attention_mask=None, labels=None):
        hidden = self.LayerNorm(torch.tanh(self.encoder(self.embeddings(input_ids))))
        weights = attention_mask.unsqueeze(-1).to(hidden.dtype)
        logits = self.classifier((hidden * weights).sum(1) / weights.sum(1))
        loss = torch.nn.functional.cross_entropy(logits, labels) if labels is not None else None
        return loss, logits


def get_linear_schedule_with_warmup(optimizer, num_warmup_steps, num_training_steps):
    def share(step):
        if step < num_warmup_steps:
            return step / max(1, num_warmup_steps)
        return max(0.0, (num_training_steps - step) / max(1, num_training_steps - num_warmup_steps))

    return torch.optim.lr_scheduler.LambdaLR(optimizer, share)


def train(args, train_dataset, model):
    """ Train the model """
    args.train_batch_size = args.per_gpu_train_batch_size * max(1, args.n_gpu)
    train_sampler = RandomSampler(train_dataset)
    train_dataloader = DataLoader(train_dataset, sampler=train_sampler, batch_size=args.train_batch_size)
    t_total = len(train_dataloader) // args.gradient_accumulation_steps * args.num_train_epochs

    # Prepare optimizer and schedule (linear warmup and decay)
    no_decay = ["bias", "LayerNorm.weight"]
    optimizer_grouped_parameters = [
        {
            "params": [p for n, p in model.named_parameters() if not any(nd in n for nd in no_decay)],
            "weight_decay": args.weight_decay,
        },
        {"params": [p for n, p in model.named_parameters() if any(nd in n for nd in no_decay)], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(optimizer_grouped_parameters, lr=args.learning_rate, eps=args.adam_epsilon)
    scheduler = get_linear_schedule_with_warmup(
        optimizer, num_warmup_steps=args.warmup_steps, num_training_steps=t_total
    )

    logger.info("***** Running training *****")
    global_step = 0
    tr_loss = 0.0
    model.zero_grad()
    for _ in range(int(args.num_train_epochs)):
        for step, batch in enumerate(train_dataloader):
            model.train()
            batch = tuple(t.to(args.device) for t in batch)
            inputs = {"input_ids": batch[0], "attention_mask": batch[1], "labels": batch[2]}
            with torch.autocast(device_type="cpu", dtype=torch.bfloat16, enabled=args.use_autocast):
                outputs = model(**inputs)
                loss = outputs[0]

            if args.n_gpu > 1:
                loss = loss.mean()  # mean() to average on multi-gpu parallel training
            if args.gradient_accumulation_steps > 1:
                loss = loss / args.gradient_accumulation_steps

            loss.backward()
            tr_loss += loss.item()
            if (step + 1) % args.gradient_accumulation_steps == 0:
                torch.nn.utils.clip_grad_norm_(model.parameters(), args.max_grad_norm)
                optimizer.step()
                scheduler.step()  # Update learning rate schedule
                model.zero_grad()
                global_step += 1
    return global_step, tr_loss / global_step


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--per_gpu_train_batch_size", default=4, type=int)
    parser.add_argument("--gradient_accumulation_steps", type=int, default=1)
    parser.add_argument("--learning_rate", default=5e-3, type=float)
    parser.add_argument("--weight_decay", default=0.01, type=float)
    parser.add_argument("--adam_epsilon", default=1e-8, type=float)
    parser.add_argument("--max_grad_norm", default=1.0, type=float)
    parser.add_argument("--num_train_epochs", default=2, type=float)
    parser.add_argument("--warmup_steps", default=0, type=int)
    parser.add_argument("--use_autocast", action="store_true")
    args = parser.parse_args()
    args.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    args.n_gpu = torch.cuda.device_count()
    torch.manual_seed(5)
    ids = torch.randint(0, 50, (64, 6))
    dataset = TensorDataset(ids, torch.ones_like(ids), ids.sum(1) % 2)
    model = BertForSequenceClassification()
    model.to(args.device)
    print(train(args, dataset, model))


if __name__ == "__main__":
    main()
