import contextlib
import logging
import os

import torch

from src.config.config import ComputeMode, OptimizerKind
from src.networks.torch.LossCalculator import LossCalculator
from src.networks.torch.uresnet2D import UResNet
from src.utils.core.trainercore import trainercore

logger = logging.getLogger()


class torch_trainer(trainercore):

    def __init__(self, args):
        trainercore.__init__(self, args)

    def init_network(self):
        torch.manual_seed(self.args.run.seed)
        self._raw_net = UResNet(self.args.network)
        if self.is_training():
            self._raw_net.train(True)
        self._net = self._raw_net

    def initialize(self, io_only=False):
        self.init_network()
        self._net = self._net.to(self.default_device())
        self.init_optimizer()
        if self.is_training():
            self.build_lr_schedule()
        self.loss_calculator = LossCalculator()

    def build_lr_schedule(self):
        base = self.args.mode.optimizer.learning_rate
        self.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(
            self._opt, lambda step: base * min(1.0, (step + 1) / 4), last_epoch=-1)

    def init_optimizer(self):
        # The schedule multiplies this rate.
        if self.args.mode.optimizer.name == OptimizerKind.rmsprop:
            self._opt = torch.optim.RMSprop(self._net.parameters(), 1.0, eps=1e-4)
        else:
            self._opt = torch.optim.Adam(self._net.parameters(), 1.0)

    def default_device(self):
        if self.args.run.compute_mode == ComputeMode.GPU:
            device = torch.device("cuda")
        elif self.args.run.compute_mode == ComputeMode.XPU:
            device = torch.device("xpu")
        else:
            device = torch.device('cpu')
        return device

    def default_device_context(self):
        if self.args.run.compute_mode == ComputeMode.GPU:
            return torch.cuda.device(0)
        else:
            return contextlib.nullcontext()
            # device = torch.device('cpu')

    def to_torch(self, minibatch_data):
        device = self.default_device()
        return {key: torch.tensor(value, device=device) for key, value in minibatch_data.items()}

    def get_model_filepath(self):
        '''The folder of checkpoints, and the name of the next one.'''
        file_path = self.args.output_dir + "/checkpoints/"
        name = file_path + 'model-{}.ckpt'.format(self._global_step)
        return name, file_path

    def save_model(self):
        name, file_path = self.get_model_filepath()
        os.makedirs(file_path, exist_ok=True)
        torch.save({
            'global_step': self._global_step,
            'state_dict': self._raw_net.state_dict(),
            'optimizer': self._opt.state_dict(),
        }, name)

    def checkpoint(self):
        if self._global_step % self.args.mode.checkpoint_iteration == 0:
            self.save_model()

    def forward_pass(self, minibatch_data):
        minibatch_data = self.to_torch(minibatch_data)
        labels_image = minibatch_data['label'].long()
        labels_image = torch.chunk(labels_image, chunks=3, dim=1)
        shape = labels_image[0].shape
        labels_image = [_label.view([shape[0], shape[-2], shape[-1]]) for _label in labels_image]
        logits_image = self._net(minibatch_data['image'])
        return logits_image, labels_image

    def train_step(self):
        self._net.train()
        self._opt.zero_grad()
        minibatch_data = self.fetcher.fetch_next_batch(self.args.run.minibatch_size)
        with self.default_device_context():
            logits, labels_image = self.forward_pass(minibatch_data)
            loss = self.loss_calculator(labels_image, logits)
            loss.backward()
            self._opt.step()
            self.lr_scheduler.step()
        self.log({"loss": loss.item()}, "train")
        self._global_step += 1

    def val_step(self):
        self._net.eval()
        minibatch_data = self.aux_fetcher.fetch_next_batch(self.args.run.minibatch_size)
        with torch.no_grad(), self.default_device_context():
            logits, labels_image = self.forward_pass(minibatch_data)
            loss = self.loss_calculator(labels_image, logits)
        self.log({"loss": loss.item()}, "test")

    def ana_step(self):
        self.val_step()
        self._global_step += 1
