import torch
from torch import nn
from torch.utils.data import DataLoader
DEVICE = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
PAD_IDX = 1
torch.manual_seed(0)
class Seq2SeqTransformer(nn.Module):
    def __init__(self, v):
        super().__init__()
        self.src_emb, self.tgt_emb = nn.Embedding(v, 16), nn.Embedding(v, 16)
        self.transformer = nn.Transformer(16, 2, 1, 1, 32, 0.0)
        self.generator = nn.Linear(16, v)
    def forward(self, src, trg, src_mask, tgt_mask, src_padding_mask, tgt_padding_mask, memory_key_padding_mask):
        outs = self.transformer(self.src_emb(src), self.tgt_emb(trg), src_mask, tgt_mask, None, src_padding_mask, tgt_padding_mask, memory_key_padding_mask)
        return self.generator(outs)
def generate_square_subsequent_mask(sz):
    mask = (torch.triu(torch.ones((sz, sz), device=DEVICE)) == 1).transpose(0, 1)
    mask = mask.float().masked_fill(mask == 0, float('-inf')).masked_fill(mask == 1, float(0.0))
    return mask
def create_mask(src, tgt):
    src_seq_len, tgt_seq_len = src.shape[0], tgt.shape[0]
    tgt_mask = generate_square_subsequent_mask(tgt_seq_len)
    src_mask = torch.zeros((src_seq_len, src_seq_len), device=DEVICE)
    return src_mask, tgt_mask, (src == PAD_IDX).float().masked_fill((src == PAD_IDX), float('-inf')).transpose(0, 1), (tgt == PAD_IDX).float().masked_fill((tgt == PAD_IDX), float('-inf')).transpose(0, 1)
def collate_fn(batch):
    src, tgt = zip(*batch)
    return torch.stack(src, 1), torch.stack(tgt, 1)
data = [(torch.randint(2, 30, (6,)), torch.randint(2, 30, (7,))) for _ in range(48)]
transformer = Seq2SeqTransformer(30)
for p in transformer.parameters():
    if p.dim() > 1:
        nn.init.xavier_uniform_(p)
transformer = transformer.to(DEVICE)
loss_fn = torch.nn.CrossEntropyLoss(ignore_index=PAD_IDX)
optimizer = torch.optim.Adam(transformer.parameters(), lr=0.0001, betas=(0.9, 0.98), eps=1e-9)
def train_epoch(model, optimizer):
    model.train()
    losses = 0
    train_dataloader = DataLoader(data, batch_size=8, collate_fn=collate_fn)
    for src, tgt in train_dataloader:
        src = src.to(DEVICE)
        tgt = tgt.to(DEVICE)
        tgt_input = tgt[:-1, :]
        src_mask, tgt_mask, src_padding_mask, tgt_padding_mask = create_mask(src, tgt_input)
        logits = model(src, tgt_input, src_mask, tgt_mask,src_padding_mask, tgt_padding_mask, src_padding_mask)
        optimizer.zero_grad()
        tgt_out = tgt[1:, :]
        loss = loss_fn(logits.reshape(-1, logits.shape[-1]), tgt_out.reshape(-1))
        loss.backward()
        optimizer.step()
        losses += loss.item()
    return losses / len(list(train_dataloader))
for epoch in range(1, 3):
    print(train_epoch(transformer, optimizer))
