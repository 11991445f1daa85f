"""A folder of pictures whose files are listed in a manifest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from torch.utils.data import Dataset

IMG_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


def _picture(path: str) -> Any:
    from PIL import Image

    with Image.open(path) as file:
        return file.convert("RGB")


class ImageFolderWithManifest(Dataset[Any]):
    """Pictures in one folder per class, like torchvision's ImageFolder; a manifest lists the files.

    The manifest is a list of paths, or a text file with one on each line; relative ones are under ``root``.
    """

    def __init__(
        self,
        root: str | Path,
        manifest: str | Path | Iterable[str | Path],
        loader: Callable[[str], Any] = _picture,
        extensions: tuple[str, ...] | None = IMG_EXTENSIONS,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
        is_valid_file: Callable[[str], bool] | None = None,
    ) -> None:
        self.root, self.loader = str(root), loader
        self.transform, self.target_transform = transform, target_transform
        listed = Path(manifest).read_text().splitlines() if isinstance(manifest, str | Path) else manifest
        paths = [Path(root, each) for each in listed if str(each).strip()]
        is_wanted = is_valid_file or (lambda path: extensions is None or path.lower().endswith(extensions))
        paths = [path for path in paths if is_wanted(str(path))]
        if not paths:
            raise FileNotFoundError(f"The manifest lists no images under {root}.")
        self.classes = sorted({path.parent.name for path in paths})
        self.class_to_idx = {name: number for number, name in enumerate(self.classes)}
        self.samples = [(str(path), self.class_to_idx[path.parent.name]) for path in paths]
        self.imgs, self.targets = self.samples, [target for _, target in self.samples]

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        path, target = self.samples[index]
        sample = self.loader(path)
        if self.transform is not None:
            sample = self.transform(sample)
        return sample, target if self.target_transform is None else self.target_transform(target)
