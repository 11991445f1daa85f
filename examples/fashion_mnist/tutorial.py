"""The four commands: `train`, `evaluate`, `predict` and `all`."""

import io
import pickle
from collections.abc import Callable

import summary
import torch
from metrics import Evaluation, evaluation
from model import GarmentClassifier
from pictures import save_before_after, save_confusion, save_samples
from predict import Prediction, predictions, prepared
from settings import Settings, TrainingRecord
from torch import Tensor

from examples.datasets.fashion_mnist import Splits, load
from examples.datasets.fashion_mnist.dataset import FashionMNIST
from pilotage.devices.registry import choose
from pilotage.errors import DatasetError, OptionError
from pilotage.whole_files import write_whole

Scores = Callable[[GarmentClassifier, Tensor], Tensor]


def run(command: str, settings: Settings) -> None:
    """Run a command."""
    if not settings.plain:
        choose()  # raises if the device is missing, before anything is downloaded
    if command == "predict":
        run_predict(settings)
    elif command == "evaluate":
        run_evaluate(settings)
    elif command == "train":
        run_train(settings)
    else:
        run_all(settings)


def run_train(settings: Settings) -> None:
    _, record = trained(loaded(settings), settings)
    summary.show("Training", summary.training_rows(record, through(settings)))
    summary.show("Files", summary.file_rows({"weights": settings.classifier, "samples": settings.samples}))


def run_evaluate(settings: Settings) -> None:
    result = evaluated(restored(settings), loaded(settings), settings)
    summary.show("Evaluation", summary.evaluation_rows(result))
    summary.show("Files", summary.file_rows({"confusion matrix": settings.confusion}))


def run_predict(settings: Settings) -> None:
    for prediction in predicted(restored(settings), settings):
        summary.show(f"{prediction.picture.path}: {prediction.name}", summary.prediction_rows(prediction))
    summary.show("Files", summary.file_rows({"before and after": settings.before_after}))


def run_all(settings: Settings) -> None:
    data = loaded(settings)
    model, record = trained(data, settings)
    result = evaluated(model, data, settings)
    # Predict with the weights from disk, as a user of the file would.
    own_pictures = predicted(restored(settings), settings)
    summary.show("Training", [("data", data.origin), *summary.training_rows(record, through(settings))])
    summary.show("Evaluation", summary.evaluation_rows(result))
    for prediction in own_pictures:
        summary.show(f"{prediction.picture.path.name}: {prediction.name}", summary.prediction_rows(prediction)[:3])
    files = {
        "weights": settings.classifier,
        "samples": settings.samples,
        "confusion matrix": settings.confusion,
        "before and after": settings.before_after,
    }
    summary.show("Files", summary.file_rows(files))


def loaded(settings: Settings) -> Splits:
    return load(settings.data, limit=settings.subset)


def trained(data: Splits, settings: Settings) -> tuple[GarmentClassifier, TrainingRecord]:
    """Train from scratch and save the weights and the samples."""
    per_call = settings.batch_size * settings.device_iterations
    if per_call > len(data.train):
        raise OptionError(
            f"One call takes {per_call:,} images, but there are only {len(data.train):,}. Reduce the batch size."
        )
    save_samples(data.train, settings.samples)
    torch.manual_seed(settings.seed)
    model = GarmentClassifier()
    if settings.plain:
        from plain import train
    else:
        from train import train
    record = train(model, FashionMNIST(data.train), settings)
    stored = io.BytesIO()
    torch.save(model.state_dict(), stored)
    write_whole(settings.classifier, stored.getvalue())
    return model, record


def evaluated(model: GarmentClassifier, data: Splits, settings: Settings) -> Evaluation:
    """Test the model and save its confusion matrix."""
    test = FashionMNIST(data.test)
    result = evaluation(test.labels, scores_of(settings)(model, test.images))
    save_confusion(result, settings.confusion)
    return result


def predicted(model: GarmentClassifier, settings: Settings) -> list[Prediction]:
    """Classify the user's own pictures and save them before and after preparation."""
    pictures = [prepared(path) for path in settings.images]
    results = predictions(pictures, scores_of(settings)(model, torch.stack([picture.tensor for picture in pictures])))
    save_before_after(results, settings.before_after)
    return results


def restored(settings: Settings) -> GarmentClassifier:
    """The saved classifier."""
    model = GarmentClassifier()
    try:
        model.load_state_dict(torch.load(settings.classifier, weights_only=True))
    except FileNotFoundError:
        raise DatasetError(f"{settings.classifier} does not exist yet. Run `train` first, or set --output.") from None
    except (RuntimeError, OSError, EOFError, pickle.UnpicklingError, AttributeError, TypeError) as error:
        reason = str(error).strip().splitlines()[0].rstrip(":.")
        raise DatasetError(f"{settings.classifier} does not hold this network's weights: {reason}.") from None
    return model


def scores_of(settings: Settings) -> Scores:
    if settings.plain:
        from plain import scores
    else:
        from evaluate import scores
    return scores


def through(settings: Settings) -> str:
    if settings.plain:
        return "plain PyTorch"
    choice = choose()
    return f"poptorch.trainingModel on {choice.capabilities.device}, tier {choice.tier.value}"
