"""Policy gradients on a small corridor: the agent has to walk to its right end."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical

parser = argparse.ArgumentParser()
parser.add_argument('--gamma', type=float, default=0.99)
parser.add_argument('--episodes', type=int, default=6)
args = parser.parse_args()
torch.manual_seed(101)


class Corridor:
    def reset(self):
        self.place = 2
        return self.state()

    def state(self):
        return F.one_hot(torch.tensor(self.place), 5).float()

    def step(self, action):
        self.place = max(0, min(4, self.place + (1 if action else -1)))
        done = self.place in (0, 4)
        return self.state(), 1.0 if self.place == 4 else -0.1, done


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine = nn.Linear(5, 2)
        self.saved_log_probs = []
        self.rewards = []

    def forward(self, x):
        return F.softmax(self.affine(x), dim=-1)


env = Corridor()
policy = Policy()
optimizer = optim.Adam(policy.parameters(), lr=1e-2)


def select_action(state):
    probabilities = policy(state.unsqueeze(0))
    m = Categorical(probabilities)
    action = m.sample()
    policy.saved_log_probs.append(m.log_prob(action))
    return action.item()


def finish_episode():
    R, returns = 0, []
    for r in policy.rewards[::-1]:
        R = r + args.gamma * R
        returns.insert(0, R)
    policy_loss = [-log_prob * R for log_prob, R in zip(policy.saved_log_probs, returns)]
    optimizer.zero_grad()
    loss = torch.cat(policy_loss).sum()
    loss.backward()
    optimizer.step()
    del policy.rewards[:]
    del policy.saved_log_probs[:]


for episode in range(args.episodes):
    state, done = env.reset(), False
    for t in range(20):
        action = select_action(state)
        state, reward, done = env.step(action)
        policy.rewards.append(reward)
        if done:
            break
    finish_episode()
    print(f'Episode {episode}\tLast length: {t + 1}')
