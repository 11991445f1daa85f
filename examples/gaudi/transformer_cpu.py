"""A small transformer that learns to write Python, letter by letter, from a module of the standard library."""

import argparse
import inspect
import textwrap

import torch
from torch import nn
from torch.nn import functional

WIDTH, HEADS, LAYERS, CONTEXT = 64, 4, 2, 48


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.into, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def attend(self, query, key, value):
        return functional.scaled_dot_product_attention(query, key, value, is_causal=True)

    def forward(self, states):
        rows, length, _ = states.shape
        heads = self.into(self.norm1(states)).view(rows, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        attended = self.attend(*heads.unbind()).transpose(1, 2).reshape(rows, length, WIDTH)
        states = states + self.out(attended)
        return states + self.narrow(functional.gelu(self.wide(self.norm2(states))))


class Transformer(nn.Module):
    def __init__(self, letters):
        super().__init__()
        self.letters = nn.Embedding(letters, WIDTH)
        self.places = nn.Parameter(0.02 * torch.randn(CONTEXT, WIDTH))
        self.layers = nn.Sequential(*(Layer() for _ in range(LAYERS)))
        self.last = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, letters))

    def forward(self, text):
        return self.last(self.layers(self.letters(text) + self.places[: text.shape[1]]))


def text_in_numbers():
    text = inspect.getsource(textwrap)
    alphabet = sorted(set(text))
    return torch.tensor([alphabet.index(letter) for letter in text]), alphabet


def batches(text, count, rows):
    for _ in range(count):
        starts = torch.randint(len(text) - CONTEXT - 1, (rows,))
        pieces = torch.stack([text[start : start + CONTEXT + 1] for start in starts.tolist()])
        yield pieces[:, :-1], pieces[:, 1:]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--log-every", type=int, default=20)
    arguments = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cpu")
    text, alphabet = text_in_numbers()
    model = Transformer(len(alphabet)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, eps=1e-9, weight_decay=0.01)
    for step, (letters, following) in enumerate(batches(text, arguments.steps, arguments.batch_size), 1):
        letters, following = letters.to(device), following.to(device)
        optimizer.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(model(letters).flatten(0, 1), following.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % arguments.log_every == 0:
            print(f"step {step}: loss {loss.item():.9f}")


if __name__ == "__main__":
    main()
