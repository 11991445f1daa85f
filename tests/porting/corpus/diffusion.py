import copy
import torch
import torch.nn as nn
from torch import optim
from torch.utils.data import DataLoader, TensorDataset


class Diffusion:
    def __init__(self, noise_steps=50, beta_start=1e-4, beta_end=0.02, img_size=8, device="cuda"):
        self.noise_steps = noise_steps
        self.device = device
        self.beta = torch.linspace(beta_start, beta_end, noise_steps).to(device)
        self.alpha = 1. - self.beta
        self.alpha_hat = torch.cumprod(self.alpha, dim=0)

    def noise_images(self, x, t):
        sqrt_alpha_hat = torch.sqrt(self.alpha_hat[t])[:, None]
        sqrt_one_minus_alpha_hat = torch.sqrt(1 - self.alpha_hat[t])[:, None]
        eps = torch.randn_like(x)
        return sqrt_alpha_hat * x + sqrt_one_minus_alpha_hat * eps, eps

    def sample_timesteps(self, n):
        return torch.randint(low=1, high=self.noise_steps, size=(n,))


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Embedding(50, 16)
        self.a, self.b = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x, t):
        return self.b(torch.relu(self.a(x) + self.time(t)))


class EMA:
    def __init__(self, beta):
        self.beta = beta

    def step_ema(self, ema_model, model):
        for current_params, ma_params in zip(model.parameters(), ema_model.parameters()):
            ma_params.data = ma_params.data * self.beta + (1 - self.beta) * current_params.data


def train(lr=3e-3, epochs=2):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dataloader = DataLoader(TensorDataset(torch.rand(40, 8)), batch_size=8, shuffle=True)
    model = Denoiser().to(device)
    optimizer = optim.AdamW(model.parameters(), lr=lr)
    mse = nn.MSELoss()
    diffusion = Diffusion(device=device)
    ema = EMA(0.995)
    ema_model = copy.deepcopy(model).eval().requires_grad_(False)

    for epoch in range(epochs):
        for i, (images,) in enumerate(dataloader):
            images = images.to(device)
            t = diffusion.sample_timesteps(images.shape[0]).to(device)
            x_t, noise = diffusion.noise_images(images, t)
            predicted_noise = model(x_t, t)
            loss = mse(noise, predicted_noise)

            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            ema.step_ema(ema_model, model)
        print(f"{epoch}: MSE={loss.item():.5f}")
    torch.save(ema_model.state_dict(), "ema_ckpt.pt")


if __name__ == '__main__':
    torch.manual_seed(8)
    train()
