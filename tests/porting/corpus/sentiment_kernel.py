import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import Dataset, DataLoader
from tqdm import tqdm
class config: 
    DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
    TRAIN_BATCH_SIZE = 8
    EPOCHS = 2
class BERTDataset:
    def __init__(self, n): self.n = n
    def __len__(self): return self.n
    def __getitem__(self, item):
        g = torch.Generator().manual_seed(item)
        ids = torch.randint(0, 40, (7,), generator=g)
        return {"ids": ids, "mask": torch.ones(7, dtype=torch.long), "token_type_ids": torch.zeros(7, dtype=torch.long), "targets": torch.tensor(item % 2, dtype=torch.float)}
class BERTBaseUncased(nn.Module):
    def __init__(self):
        super(BERTBaseUncased, self).__init__()
        self.bert = nn.Embedding(40, 16)
        self.bert_drop = nn.Dropout(0.0)
        self.out = nn.Linear(16, 1)
    def forward(self, ids, mask, token_type_ids):
        o2 = self.bert(ids).mean(1)
        return self.out(self.bert_drop(o2))
def loss_fn(outputs, targets):
    return nn.BCEWithLogitsLoss()(outputs, targets.view(-1, 1))
def train_fn(data_loader, model, optimizer, device, scheduler):
    model.train()
    for bi, d in tqdm(enumerate(data_loader), total=len(data_loader)):
        ids = d["ids"]
        token_type_ids = d["token_type_ids"]
        mask = d["mask"]
        targets = d["targets"]

        ids = ids.to(device, dtype=torch.long)
        token_type_ids = token_type_ids.to(device, dtype=torch.long)
        mask = mask.to(device, dtype=torch.long)
        targets = targets.to(device, dtype=torch.float)

        optimizer.zero_grad()
        outputs = model(ids=ids, mask=mask, token_type_ids=token_type_ids)

        loss = loss_fn(outputs, targets)
        loss.backward()
        optimizer.step()
        scheduler.step()
def eval_fn(data_loader, model, device):
    model.eval()
    fin_targets = []
    fin_outputs = []
    with torch.no_grad():
        for bi, d in tqdm(enumerate(data_loader), total=len(data_loader)):
            ids = d["ids"].to(device, dtype=torch.long)
            mask = d["mask"].to(device, dtype=torch.long)
            tt = d["token_type_ids"].to(device, dtype=torch.long)
            outputs = model(ids=ids, mask=mask, token_type_ids=tt)
            fin_targets.extend(d["targets"].cpu().detach().numpy().tolist())
            fin_outputs.extend(torch.sigmoid(outputs).cpu().detach().numpy().tolist())
    return fin_outputs, fin_targets
def run():
    torch.manual_seed(1)
    train_data_loader = torch.utils.data.DataLoader(BERTDataset(64), batch_size=config.TRAIN_BATCH_SIZE, num_workers=0)
    valid_data_loader = torch.utils.data.DataLoader(BERTDataset(24), batch_size=8, num_workers=0)
    device = torch.device(config.DEVICE)
    model = BERTBaseUncased()
    model.to(device)
    param_optimizer = list(model.named_parameters())
    no_decay = ["bias", "LayerNorm.bias", "LayerNorm.weight"]
    optimizer_parameters = [
        {"params": [p for n, p in param_optimizer if not any(nd in n for nd in no_decay)], "weight_decay": 0.001},
        {"params": [p for n, p in param_optimizer if any(nd in n for nd in no_decay)], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(optimizer_parameters, lr=3e-3)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: 1 - s / 100)
    best_accuracy = 0
    for epoch in range(config.EPOCHS):
        train_fn(train_data_loader, model, optimizer, device, scheduler)
        outputs, targets = eval_fn(valid_data_loader, model, device)
        outputs = np.array(outputs) >= 0.5
        accuracy = (outputs[:, 0] == np.array(targets)).mean()
        print(f"Accuracy Score = {accuracy}")
        if accuracy > best_accuracy:
            torch.save(model.state_dict(), "model.bin")
            best_accuracy = accuracy
if __name__ == "__main__":
    run()
