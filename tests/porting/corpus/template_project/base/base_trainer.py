import torch
from abc import abstractmethod
from numpy import inf


class BaseTrainer:
    """
    Base class for all trainers
    """
    def __init__(self, model, criterion, metric_ftns, optimizer, config):
        self.config = config
        self.model = model
        self.criterion = criterion
        self.metric_ftns = metric_ftns
        self.optimizer = optimizer
        self.epochs = config['epochs']
        self.save_period = config['save_period']
        self.mnt_best = inf
        self.early_stop = config['early_stop']
        self.start_epoch = 1
        self.checkpoint_dir = '.'

    @abstractmethod
    def _train_epoch(self, epoch):
        raise NotImplementedError

    def train(self):
        """
        Full training logic
        """
        not_improved_count = 0
        for epoch in range(self.start_epoch, self.epochs + 1):
            result = self._train_epoch(epoch)
            log = {'epoch': epoch}
            log.update(result)
            for key, value in log.items():
                print('    {:15s}: {}'.format(str(key), value))
            best = False
            improved = log['val_loss'] <= self.mnt_best
            if improved:
                self.mnt_best = log['val_loss']
                not_improved_count = 0
                best = True
            else:
                not_improved_count += 1
            if not_improved_count > self.early_stop:
                break
            if epoch % self.save_period == 0:
                self._save_checkpoint(epoch, save_best=best)

    def _save_checkpoint(self, epoch, save_best=False):
        arch = type(self.model).__name__
        state = {
            'arch': arch,
            'epoch': epoch,
            'state_dict': self.model.state_dict(),
            'optimizer': self.optimizer.state_dict(),
        }
        torch.save(state, 'checkpoint-epoch{}.pth'.format(epoch))
