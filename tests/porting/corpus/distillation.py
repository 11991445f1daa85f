"""A small network learns from a large one."""
import torch
from torch import nn, optim
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

T, ALPHA = 2.0, 0.5


def distillation_loss(student_logits, teacher_logits, labels):
    soft = F.kl_div(F.log_softmax(student_logits / T, dim=-1), F.softmax(teacher_logits / T, dim=-1),
                    reduction="batchmean") * T * T
    return ALPHA * soft + (1 - ALPHA) * F.cross_entropy(student_logits, labels)


def train_student(teacher, student, loader, epochs, device):
    optimizer = optim.Adam(student.parameters(), lr=0.01)
    teacher.eval()   # the teacher stays as it is
    student.train()
    for epoch in range(epochs):
        for inputs, labels in loader:
            inputs, labels = inputs.to(device), labels.to(device)
            optimizer.zero_grad()
            with torch.no_grad():
                teacher_logits = teacher(inputs)
            student_logits = student(inputs)
            loss = distillation_loss(student_logits, teacher_logits, labels)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1}: {loss.item():.4f}")


torch.manual_seed(41)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
x = torch.randn(64, 10)
loader = DataLoader(TensorDataset(x, x[:, :3].argmax(1)), batch_size=8, shuffle=True)
teacher = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 3)).to(device)
student = nn.Sequential(nn.Linear(10, 8), nn.ReLU(), nn.Linear(8, 3)).to(device)
train_student(teacher, student, loader, 2, device)
