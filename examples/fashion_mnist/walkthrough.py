# ---
# jupyter:
#   jupytext:
#     formats: py:percent,ipynb
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A classifier of garments, trained as one program
#
# This tutorial goes from raw images to a network that recognises clothes, and then to pictures of your own. It
# introduces the programming model of PopTorch, which `poptorch` in this repository runs on ordinary CPUs and GPUs:
#
# 1. **load** Fashion-MNIST,
# 2. **define** a network in PyTorch, with its loss inside,
# 3. **train** it through `poptorch.trainingModel`,
# 4. **evaluate** it through `poptorch.inferenceModel`,
# 5. **predict** with and without poptorch.
#
# In plain PyTorch, Python drives each step: it calls the layers one after the other, then the backward pass, then the
# optimizer. Here the whole step (forward, loss, backward, update of the weights) is captured **once** as a single
# graph. From then on the device runs that graph by itself, and Python only passes data in and gets results back.
#
# This file is a script in which `# %%` begins a cell; `walkthrough.ipynb` beside it is the same as a notebook.

# %%
import os
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from PIL import Image, ImageOps
from sklearn.metrics import ConfusionMatrixDisplay, accuracy_score, confusion_matrix
from torch import nn
from tqdm.auto import tqdm

import poptorch

# The data set is in the folder of the examples, which is not installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] if "__file__" in globals() else Path.cwd().parents[1]))
from examples.datasets.fashion_mnist.dataset import FashionMNIST, normalised

# The same seed gives the same initial weights and the same order of images.
torch.manual_seed(42)

here = Path(__file__).parent if "__file__" in globals() else Path.cwd()
output = Path("output")
output.mkdir(exist_ok=True)

# %% [markdown]
# The whole tutorial takes a minute or two. For a quick look, set `WALKTHROUGH_SUBSET` to a number of images. Set
# `WALKTHROUGH_DATA` to a directory with the data, or to `generated` for drawn garments.

# %%
subset = int(os.environ["WALKTHROUGH_SUBSET"]) if "WALKTHROUGH_SUBSET" in os.environ else None
data = os.environ.get("WALKTHROUGH_DATA")
epochs = 5

# %% [markdown]
# ## The data
#
# Fashion-MNIST has 60,000 training images and 10,000 test images. Each is 28 pixels high and wide, grey, and shows one
# of ten kinds of garment on black. `FashionMNIST.splits` looks for it on this machine and downloads it otherwise;
# without a network it generates garments, and prints a warning.
#
# Networks learn better from numbers around zero, so the bytes 0…255 become numbers from -1 to 1.

# %%
train_dataset, test_dataset = FashionMNIST.splits(data, limit=subset)
classes = train_dataset.classes
print(f"{len(train_dataset):,} training images, {len(test_dataset):,} test images")

# %%
figure, grid = plt.subplots(3, 5, figsize=(9, 6), layout="constrained")
for axes, image, label in zip(grid.flat, train_dataset.images, train_dataset.labels, strict=False):
    axes.imshow(image[0] / 2 + 0.5, cmap="gray")  # back from -1…1 to 0…1
    axes.set_title(classes[label])
    axes.axis("off")
figure.savefig(output / "sample_images.png")

# %% [markdown]
# ## The network
#
# Ordinary PyTorch, with one difference: the **loss is computed inside `forward`**. The device runs the backward pass
# without Python, so the loss must be part of the model. With labels, this network returns
# the scores and the loss; without labels, as in evaluation, only the scores.


# %%
class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 5, kernel_size=3)
        self.pool = nn.MaxPool2d(2)
        self.conv2 = nn.Conv2d(5, 12, kernel_size=5)
        self.norm = nn.GroupNorm(3, 12)
        self.fc1 = nn.Linear(972, 100)
        self.fc2 = nn.Linear(100, 10)
        self.relu = nn.ReLU()
        self.log_softmax = nn.LogSoftmax(dim=1)
        self.loss = nn.NLLLoss()

    def forward(self, images, labels=None):
        maps = self.pool(self.relu(self.conv1(images)))
        maps = self.norm(self.relu(self.conv2(maps)))
        features = self.relu(self.fc1(torch.flatten(maps, start_dim=1)))
        scores = self.log_softmax(self.fc2(features))
        if labels is None:
            return scores
        return scores, self.loss(scores, labels)


model = Classifier()
model.train()

# %% [markdown]
# ## Training
#
# Three things are wrapped, and everything else stays the same:
#
# | plain PyTorch | poptorch |
# |---|---|
# | `torch.utils.data.DataLoader(dataset, …)` | `poptorch.DataLoader(options, dataset, …)` |
# | `torch.optim.SGD(…)` | `poptorch.optim.SGD(…)` (torch's own is accepted as well) |
# | `model` | `poptorch.trainingModel(model, options, optimizer)` |
#
# `poptorch.Options` sets how the program runs. The loader reads it too, because the options determine how many
# samples one call consumes.

# %%
options = poptorch.Options()
train_loader = poptorch.DataLoader(options, train_dataset, batch_size=16, shuffle=True)
optimizer = poptorch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
training_model = poptorch.trainingModel(model, options=options, optimizer=optimizer)

# %% [markdown]
# The loop is short. There is no `zero_grad`, no `backward` and no `step`: the call does all
# of it. The first call captures and compiles the program, as the progress bar "Graph compilation" shows.

# %%
for _epoch in tqdm(range(epochs), desc="epochs"):
    total_loss = 0.0
    for images, labels in tqdm(train_loader, desc="batches", leave=False):
        scores, loss = training_model(images, labels)
        total_loss += loss
print(f"mean loss of the last epoch: {total_loss / len(train_loader):.3f}")

# %% [markdown]
# `model` has the trained weights now; nothing needs to be copied back. Detaching frees the device for the
# evaluation. The saved file is the ordinary `state_dict` of an ordinary module, which loads anywhere.

# %%
training_model.detachFromDevice()
torch.save(model.state_dict(), output / "classifier.pth")

# %% [markdown]
# ## Evaluation
#
# `poptorch.inferenceModel` is the counterpart without optimizer and backward pass. A compiled program takes
# batches of one size, so the loader drops an incomplete last batch. A batch size of 100 divides the 10,000 images
# of the test set; for other sizes we use the largest divisor up to 100.

# %%
batch_size = next(size for size in range(100, 0, -1) if len(test_dataset) % size == 0)
test_loader = poptorch.DataLoader(options, test_dataset, batch_size=batch_size)
inference_model = poptorch.inferenceModel(model.eval(), options=options)

predicted, expected = [], []
for images, labels in test_loader:
    predicted += inference_model(images).argmax(dim=1).tolist()
    expected += labels.tolist()
inference_model.detachFromDevice()

print(f"accuracy over {len(expected):,} test pictures: {accuracy_score(expected, predicted):.2%}")

# %% [markdown]
# The confusion matrix shows more than one number: each row is a true class, and each column a predicted one.
# Trousers are rarely misclassified; shirts look a lot like T-shirts, pullovers
# and coats at a width of 28 pixels.

# %%
matrix = confusion_matrix(expected, predicted, labels=range(len(classes)))
display = ConfusionMatrixDisplay(matrix, display_labels=classes)
figure, axes = plt.subplots(figsize=(8, 7), layout="constrained")
display.plot(ax=axes, cmap="Blues", xticks_rotation="vertical", colorbar=False)
figure.savefig(output / "confusion_matrix.png")

# %% [markdown]
# ## A picture of your own
#
# The network was trained on light garments on black, 28 by 28 pixels. A catalogue picture is large, coloured and dark
# on light, so we shrink it, convert it to grey and, if its corner is light, invert it.

# %%
original = Image.open(here / "images" / "trousers.png").convert("RGB")
grey = ImageOps.grayscale(original.resize((28, 28)))
if grey.getpixel((1, 1)) > 200:
    grey = ImageOps.invert(grey)
picture = normalised(torch.tensor(np.asarray(grey))).unsqueeze(0)  # a batch of one

figure, (before, after) = plt.subplots(1, 2, figsize=(7, 3.6), layout="constrained")
before.imshow(original)
before.set_title("before")
after.imshow(grey, cmap="gray")
after.set_title("after")
figure.savefig(output / "image_before_after.png")

# %%
model = Classifier()
model.load_state_dict(torch.load(output / "classifier.pth"))
inference_model = poptorch.inferenceModel(model.eval())
scores = inference_model(picture)
inference_model.detachFromDevice()

for index in scores[0].argsort(descending=True)[:3]:
    print(f"{classes[index]:<12} {scores[0, index].exp():7.2%}")

# %% [markdown]
# The same without poptorch: only the class and the file are needed. This also works on a machine without Pilotage and
# poptorch.

# %%
model = Classifier()
model.load_state_dict(torch.load(output / "classifier.pth"))
model.eval()
with torch.no_grad():
    plain_scores = model(picture)
print("without poptorch:", classes[plain_scores.argmax()])
torch.testing.assert_close(plain_scores, scores)

# %% [markdown]
# Do not expect too much of such a small network. It was trained on single garments, upright and flat, on a plain
# background. It cannot handle a person wearing the trousers, a patterned background or a tilted camera.
#
# ## More options
#
# Options are set by calls, which can be chained:
#
# - `deviceIterations(n)`: the device runs `n` steps per call, so there is less overhead in Python. A call
#   consumes `n` batches; in training it returns the results of the last one.
# - `Training.gradientAccumulation(n)`: the gradients of `n` batches are averaged before the weights change.
# - `replicationFactor(n)`: `n` copies of the model share each step, each with its own data.
# - `outputMode(mode)`: which results come back: of the last step, of every step, or their sum.
# - `randomSeed(seed)`: gives the device its own random stream, for dropout and other random operations.
#
# None of them changes what is computed on each sample. Four steps in one call, for example, end in the same weights as
# four calls:

# %%
images, labels = train_dataset.images[:64], train_dataset.labels[:64]
weights = []
for device_iterations in (1, 4):
    torch.manual_seed(42)
    model = Classifier()
    options = poptorch.Options().deviceIterations(device_iterations)
    optimizer = poptorch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    training_model = poptorch.trainingModel(model, options=options, optimizer=optimizer)
    for start in range(0, 64, 16 * device_iterations):
        chosen = slice(start, start + 16 * device_iterations)
        training_model(images[chosen], labels[chosen])
    training_model.detachFromDevice()
    weights.append(model.fc2.weight.detach().clone())
torch.testing.assert_close(weights[0], weights[1])
print("four steps in one call end in the same weights as four calls")

# %% [markdown]
# ## Where it ran
#
# The best device present is taken, and one line of the log says which. `PILOTAGE_BACKEND=cpu` or `cuda` chooses by
# hand. `PILOTAGE_TIER=eager` runs the same semantics without capturing, so that `print` and breakpoints inside
# `forward` work at every step.
