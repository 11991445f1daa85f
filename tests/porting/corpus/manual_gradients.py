"""A language model that updates its parameters by hand, with a rate that is divided when the loss rises."""
import torch
import torch.nn as nn

torch.manual_seed(127)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
text = torch.randint(8, (6, 41))
lr, bptt = 0.5, 8


class RNNModel(nn.Module):
    def __init__(self, tokens=8, width=12):
        super().__init__()
        self.encoder = nn.Embedding(tokens, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.decoder = nn.Linear(width, tokens)

    def forward(self, input, hidden):
        output, hidden = self.rnn(self.encoder(input), hidden)
        return self.decoder(output), hidden


model = RNNModel().to(device)
criterion = nn.CrossEntropyLoss()
for epoch in range(2):
    hidden = torch.zeros(1, 6, 12, device=device)
    for i in range(0, text.size(1) - 1, bptt):
        data, targets = text[:, i:i + bptt].to(device), text[:, i + 1:i + 1 + bptt].to(device)
        model.zero_grad()
        hidden = hidden.detach()
        output, hidden = model(data, hidden)
        loss = criterion(output.reshape(-1, 8), targets.reshape(-1))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-lr)
    print(epoch, loss.item())
