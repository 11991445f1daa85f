import contextlib

import hydra
import torch
from hydra.core.config_store import ConfigStore
from omegaconf import DictConfig


class Network(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Conv2d(1, width, 3, padding=1), torch.nn.LeakyReLU())
        self.head = torch.nn.Conv2d(width, 3, 1)

    def forward(self, x):
        return [self.head(self.body(plane)) for plane in torch.chunk(x, 2, dim=1)]


class LossCalculator(torch.nn.Module):
    def __init__(self, balance):
        super().__init__()
        self._criterion = torch.nn.CrossEntropyLoss(reduction="none")
        self.balance = balance

    def forward(self, labels, logits):
        total = None
        for i in range(2):
            plane = self._criterion(logits[i], labels[i])
            if self.balance:
                with torch.no_grad():
                    weight = 1.0 + 2.0 * (labels[i] > 0).float()
                plane = plane * weight
            total = torch.mean(plane) if total is None else total + torch.mean(plane)
        return total


class torch_trainer(object):
    def __init__(self, args):
        self.args = args
        self._global_step = 0
        self._log_keys = ["loss"]

    def initialize(self):
        self.init_network()
        self._net = self._net.to(self.default_device())
        self.init_optimizer()
        self.loss_calculator = LossCalculator(self.args.balance)
        self.loss_calculator.to(self.default_device())

    def init_network(self):
        self._net = Network(self.args.width)
        self._net.train(True)

    def init_optimizer(self):
        if self.args.optimizer == "adam":
            self._opt = torch.optim.Adam(self._net.parameters(), self.args.learning_rate)
        else:
            self._opt = torch.optim.RMSprop(self._net.parameters(), self.args.learning_rate)
        self.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(self._opt, lambda s: 1.0 / (1 + 0.1 * s))

    def default_device(self):
        if self.args.compute_mode == "CUDA":
            return torch.device("cuda")
        return torch.device("cpu")

    def default_device_context(self):
        if self.args.compute_mode == "CUDA":
            return torch.cuda.device(0)
        return contextlib.nullcontext()

    def fetch(self):
        g = torch.Generator().manual_seed(self._global_step)
        image = torch.rand(4, 2, 6, 6, generator=g)
        return {"image": image, "label": (image > 0.7).long() + (image > 0.9).long()}

    def to_torch(self, minibatch_data):
        device = self.default_device()
        for key in minibatch_data:
            minibatch_data[key] = minibatch_data[key].to(device)
        return minibatch_data

    def forward_pass(self, minibatch_data):
        minibatch_data = self.to_torch(minibatch_data)
        labels_image = minibatch_data["label"].long()
        labels_image = torch.chunk(labels_image, chunks=2, dim=1)
        labels_image = [torch.squeeze(l, dim=1) for l in labels_image]
        logits_image = self._net(minibatch_data["image"])
        return logits_image, labels_image

    def train_step(self):
        self._net.train()
        self._opt.zero_grad()
        minibatch_data = self.fetch()
        with self.default_device_context():
            logits_image, labels_image = self.forward_pass(minibatch_data)
            loss = self.loss_calculator(labels_image, logits_image)
            loss.backward()
        metrics = {"loss": loss.detach()}
        self._opt.step()
        self.lr_scheduler.step()
        print(self._global_step, float(metrics["loss"]))
        self._global_step += 1

    def batch_process(self):
        for i in range(self.args.iterations):
            self.train_step()


@hydra.main(version_base=None, config_path=None, config_name="base")
def main(cfg: DictConfig):
    torch.manual_seed(cfg.seed)
    trainer = torch_trainer(cfg)
    trainer.initialize()
    trainer.batch_process()


if __name__ == "__main__":
    cs = ConfigStore.instance()
    cs.store(name="base", node={"seed": 1, "width": 4, "balance": True, "optimizer": "adam", "learning_rate": 0.01,
                                "compute_mode": "CPU", "iterations": 6})
    main()
