"""The table of hosts, instances and replicas that poprun prints."""

from __future__ import annotations

from pilotage.distributed.launcher.job import Job

_TITLE = "poprun topology"
_HEADINGS = ("hosts", "ILDs", "instances", "replicas")
_WIDEST = 120


def topology(job: Job) -> str:
    """Draw which replicas belong to which instance on which host."""
    per_replica = 2 + len(str(job.replicas - 1))
    whole = job.replicas * (per_replica + 1) - 1
    domains = ["0"]
    rows = [list(job.hosts), domains, _numbers(job.instances), _numbers(job.replicas)]
    wanted = max(_needed(cells) for cells in rows)
    hosts_fit = max(whole, wanted) <= _WIDEST
    if not hosts_fit:
        rows[0] = ["."] * len(job.hosts)
    width = _width(max(whole, *(_needed(cells) for cells in rows)), [len(cells) for cells in rows])
    heading = max(map(len, _HEADINGS)) + 2
    total = heading + 1 + width
    lines = [f" {'=' * total}", f"|{_fitting(_TITLE, total):^{total}}|", f"|{'=' * total}|"]
    for number, (name, cells) in enumerate(zip(_HEADINGS, rows, strict=True)):
        if number:
            lines.append(f"|{'-' * heading}|{'-' * width}|")
        lines.append(f"|{f' {name}':<{heading}}|{_row(cells, width)}|")
    lines.append(f" {'-' * total}")
    legend = [] if hosts_fit else [f"[{number}]: {host}" for number, host in enumerate(job.hosts)]
    return "\n".join([*lines, *legend])


def _numbers(count: int) -> list[str]:
    return [str(number) for number in range(count)]


def _needed(cells: list[str]) -> int:
    return len(cells) * (max(map(len, cells)) + 3) - 1


def _width(least: int, counts: list[int]) -> int:
    """The least width in which the cells of every row are equally wide."""
    return next(width for width in range(least, least + 10_000) if all((width + 1) % count == 0 for count in counts))


def _row(cells: list[str], width: int) -> str:
    each = (width + 1) // len(cells) - 1
    return "|".join(f"{cell:^{each}}" for cell in cells)


def _fitting(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 3]}..."
