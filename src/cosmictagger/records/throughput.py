"""Images per second, and the figure of merit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

LAST = 40


@dataclass(slots=True)
class Throughput:
    """The seconds of each iteration, without compilation."""

    images_per_step: int
    seconds: list[float] = field(default_factory=list)
    compilation: float = 0.0

    def add(self, seconds: float, compilation: float = 0.0) -> None:
        """Add an iteration; its compilation time is counted separately."""
        self.seconds.append(seconds - compilation)
        self.compilation += compilation

    def rate(self, seconds: list[float]) -> float:
        """Images per second over some iterations."""
        return self.images_per_step * len(seconds) / max(sum(seconds), 1e-9)

    @property
    def figure_of_merit(self) -> float | None:
        """Images per second without the first two iterations; None if there are no others."""
        return self.rate(self.seconds[2:]) if len(self.seconds) > 2 else None

    def lines(self) -> Iterator[str]:
        """The summary at the end of a run."""
        if self.compilation:
            yield f"Time to compile, not counted below: {self.compilation:.3f}"
        yield f"Total time to batch_process: {sum(self.seconds):.4f}"
        for words, rest in (
            ("first iteration", self.seconds[1:]),
            ("first two iterations", self.seconds[2:]),
        ):
            if rest:
                merit = " (figure of merit)" if "two" in words else ""
                yield (
                    f"Total time to batch_process except {words}: {sum(rest):.4f}, "
                    f"throughput: {self.rate(rest):.4f}{merit}"
                )
        if len(self.seconds) > LAST:
            last = self.seconds[-LAST:]
            yield (
                f"Total time to batch_process last {LAST} iterations: {sum(last):.4f}, "
                f"throughput: {self.rate(last):.4f}"
            )
