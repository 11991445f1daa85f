"""Draw docs/images/scaling.png: CosmicTagger's published throughput and the model that is fitted to it."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt

from tools.scaling_model import fitted

PUBLISHED = {4: 13.42, 8: 26.44, 16: 52.77, 32: 101.7, 64: 208.0, 128: 350.7, 256: 685.2, 512: 1267.0, 1024: 1965.0}
KEPT_OUT = {1700: 3097.0}


def main() -> None:
    """Write the image."""
    model = fitted(PUBLISHED)
    counts = [2**power for power in range(2, 14)]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    left.loglog(counts, [model.throughput(count) for count in counts], color="tab:blue", label="model")
    left.loglog(counts, [count * model.throughput(1) for count in counts], ":", color="gray", label="without any loss")
    left.plot(*zip(*PUBLISHED.items(), strict=True), "o", color="tab:orange", label="published")
    left.plot(*zip(*KEPT_OUT.items(), strict=True), "s", color="tab:red", label="published, kept out of the fit")
    left.set(xlabel="ranks", ylabel="images per second", title="CosmicTagger, torch DDP, A100")
    left.legend(frameon=False, fontsize=8)
    right.semilogx(counts, [100 * model.efficiency(count) for count in counts], color="tab:blue")
    for rows, mark, color in ((PUBLISHED, "o", "tab:orange"), (KEPT_OUT, "s", "tab:red")):
        values = [100 * images / count / model.throughput(1) for count, images in rows.items()]
        right.plot([*rows], values, mark, color=color)
    right.axvspan(1024, 8192, color="0.93", zorder=0)
    right.text(1100, 3, "beyond the fit", fontsize=8, color="0.4")
    right.set(xlabel="ranks", ylabel="efficiency, %", ylim=(0, 105), title="Each rank, relative to a single one")
    target = Path(__file__).parents[1] / "docs/images/scaling.png"
    figure.savefig(target, dpi=110)
    print(target)


if __name__ == "__main__":
    main()
