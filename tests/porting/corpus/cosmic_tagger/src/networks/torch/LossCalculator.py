import torch


class LossCalculator(torch.nn.Module):
    """Focal loss of each plane, normalised by its weights, summed over the planes."""

    def __init__(self):
        torch.nn.Module.__init__(self)
        self._criterion = torch.nn.CrossEntropyLoss(reduction='none')

    def forward(self, labels, logits):
        total = None
        for label, logit in zip(labels, logits):
            plane_loss = self._criterion(input=logit, target=label)
            with torch.no_grad():
                weight = (1.0 - torch.exp(-plane_loss)) ** 2
            plane_loss = torch.sum(weight * plane_loss) / torch.sum(weight)
            total = plane_loss if total is None else total + plane_loss
        return total
