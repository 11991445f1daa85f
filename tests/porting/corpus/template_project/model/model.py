import torch.nn as nn
import torch.nn.functional as F
from base.base_model import BaseModel


class MnistModel(BaseModel):
    def __init__(self, num_classes=2):
        super().__init__()
        self.fc1 = nn.Linear(12, 16)
        self.fc2 = nn.Linear(16, num_classes)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        return F.log_softmax(self.fc2(x), dim=1)
