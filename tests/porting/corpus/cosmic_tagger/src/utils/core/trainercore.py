import logging
import time

from src.config.config import ModeKind
from src.io.events import event_fetcher

logger = logging.getLogger()


class trainercore(object):
    """What all frameworks share: the loop over iterations, and when to validate and save."""

    def __init__(self, args):
        self.args = args
        self._global_step = 0
        self._rank = 0
        self.fetcher = event_fetcher()
        self.aux_fetcher = event_fetcher(seed=6)

    def is_training(self):
        return self.args.mode.name == ModeKind.train

    def log(self, metrics, kind):
        if self._rank == 0 and self._global_step % self.args.mode.logging_iteration == 0:
            logger.info(f"{kind} Step {self._global_step} metrics: loss: {metrics['loss']:.4f}")

    def batch_process(self):
        start = time.time()
        for iteration in range(self.args.run.iterations):
            if self.is_training():
                if self._global_step != 0 and self._global_step % self.args.run.aux_iterations == 0:
                    self.val_step()
                self.train_step()
                self.checkpoint()
            else:
                self.ana_step()
        if self._rank == 0:
            logger.info(f"Total time to batch_process: {time.time() - start:.3f}")
