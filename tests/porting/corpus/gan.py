"""A generator and a discriminator, each with an optimizer."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(97)
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
nz = 4
real_data = torch.randn(64, 2) * 0.5 + torch.tensor([2.0, -1.0])
dataloader = DataLoader(TensorDataset(real_data), batch_size=16, shuffle=True)

netG = nn.Sequential(nn.Linear(nz, 16), nn.ReLU(True), nn.Linear(16, 2)).to(device)
netD = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1), nn.Sigmoid()).to(device)
criterion = nn.BCELoss()
optimizerD = torch.optim.Adam(netD.parameters(), lr=2e-3, betas=(0.5, 0.999))
optimizerG = torch.optim.Adam(netG.parameters(), lr=2e-3, betas=(0.5, 0.999))

for epoch in range(2):
    for i, (data,) in enumerate(dataloader):
        # the discriminator: log(D(x)) + log(1 - D(G(z)))
        netD.zero_grad()
        real = data.to(device)
        label = torch.full((real.size(0),), 1.0, device=device)
        output = netD(real).view(-1)
        errD_real = criterion(output, label)
        errD_real.backward()
        noise = torch.randn(real.size(0), nz, device=device)
        fake = netG(noise)
        label.fill_(0.0)
        output = netD(fake.detach()).view(-1)
        errD_fake = criterion(output, label)
        errD_fake.backward()
        optimizerD.step()

        # the generator: log(D(G(z)))
        netG.zero_grad()
        label.fill_(1.0)
        output = netD(fake).view(-1)
        errG = criterion(output, label)
        errG.backward()
        optimizerG.step()
    print(f"[{epoch}] Loss_D: {(errD_real + errD_fake).item():.4f} Loss_G: {errG.item():.4f}")
