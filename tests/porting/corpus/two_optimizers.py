"""The embeddings have an optimizer of their own."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Recommender(nn.Module):
    def __init__(self, users=12, items=15, width=6):
        super().__init__()
        self.users = nn.Embedding(users, width)
        self.items = nn.Embedding(items, width)
        self.mix = nn.Sequential(nn.Linear(2 * width, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, user, item):
        return self.mix(torch.cat([self.users(user), self.items(item)], dim=1)).squeeze(1)


def main():
    torch.manual_seed(103)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    user, item = torch.randint(12, (64,)), torch.randint(15, (64,))
    loader = DataLoader(TensorDataset(user, item, (user * item % 5).float()), batch_size=8, shuffle=True)
    model = Recommender().to(device)
    criterion = nn.MSELoss()
    embedding_optimizer = torch.optim.Adagrad([*model.users.parameters(), *model.items.parameters()], lr=0.1)
    dense_optimizer = torch.optim.Adam(model.mix.parameters(), lr=0.01)
    for epoch in range(2):
        for user, item, rating in loader:
            user, item, rating = user.to(device), item.to(device), rating.to(device)
            embedding_optimizer.zero_grad()
            dense_optimizer.zero_grad()
            loss = criterion(model(user, item), rating)
            loss.backward()
            embedding_optimizer.step()
            dense_optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
