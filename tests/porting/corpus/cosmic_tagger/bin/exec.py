#!/usr/bin/env python
import logging
import os
import sys

import hydra

# The sources are beside this folder.
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from src.config.config import Config, Framework, ModeKind, register

register()
sys.argv += ["hydra.run.dir=.", "hydra.output_subdir=null", "hydra/job_logging=disabled", "hydra/hydra_logging=disabled"]


class exec(object):

    def __init__(self, config):
        self.args = config
        logging.basicConfig(level=logging.INFO, format="%(asctime)s - %(levelname)s - %(message)s")
        if self.args.mode.name == ModeKind.train:
            self.train()
        if self.args.mode.name == ModeKind.inference:
            self.inference()

    def make_trainer(self):
        if self.args.framework == Framework.tensorflow:
            from src.utils.tensorflow2 import trainer
            self.trainer = trainer.tf_trainer(self.args)
        elif self.args.run.distributed:
            from src.utils.torch import distributed_trainer
            self.trainer = distributed_trainer.distributed_trainer(self.args)
        else:
            from src.utils.torch import trainer
            self.trainer = trainer.torch_trainer(self.args)

    def train(self):
        logging.getLogger().info("Running Training")
        self.make_trainer()
        self.trainer.initialize()
        self.trainer.batch_process()

    def inference(self):
        logging.getLogger().info("Running Inference")
        self.make_trainer()
        self.trainer.initialize()
        self.trainer.batch_process()


@hydra.main(version_base=None, config_path="../src/config", config_name="config")
def main(cfg: Config) -> None:
    exec(cfg)


if __name__ == '__main__':
    main()
