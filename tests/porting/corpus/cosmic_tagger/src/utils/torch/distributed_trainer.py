import contextlib
import datetime
import logging
import os

import torch

from src.config.config import ComputeMode
from src.utils.torch.trainer import torch_trainer

logger = logging.getLogger()


class distributed_trainer(torch_trainer):

    def __init__(self, args):
        torch_trainer.__init__(self, args)
        rank = int(os.environ["RANK"])
        size = int(os.environ["WORLD_SIZE"])
        local_rank = os.environ["LOCAL_RANK"]
        if self.args.run.compute_mode == ComputeMode.GPU:
            torch.cuda.set_device(int(local_rank))

        # What backend?  nccl on GPU, gloo on CPU
        if self.args.run.compute_mode == ComputeMode.DPCPP: backend = 'ccl'
        elif self.args.run.compute_mode == ComputeMode.GPU: backend = 'nccl'
        elif self.args.run.compute_mode == ComputeMode.CPU: backend = 'gloo'

        init_method = 'env://'
        torch.distributed.init_process_group(
            backend     = backend,
            init_method = init_method,
            world_size  = size,
            rank        = rank,
            timeout     = datetime.timedelta(seconds=120)
        )
        self._rank = rank
        self._size = size
        self._local_rank = local_rank

    def init_network(self):
        torch_trainer.init_network(self)
        self._net = torch.nn.parallel.DistributedDataParallel(self._raw_net.to(self.default_device()))

    def default_device_context(self):
        if self.args.run.compute_mode == ComputeMode.GPU:
            return torch.cuda.device(int(self._local_rank))
        else:
            return contextlib.nullcontext()
            # device = torch.device('cpu')

    def default_device(self):
        if self.args.run.compute_mode == ComputeMode.GPU:
            device = torch.device("cuda:{}".format(int(self._local_rank)))
        elif self.args.run.compute_mode == ComputeMode.XPU:
            device = torch.device("xpu:{}".format(int(self._local_rank)))
        else:
            device = torch.device('cpu')
        return device

    def save_model(self):
        if self._rank == 0:
            torch_trainer.save_model(self)
