"""The table of hosts, instances and replicas that poprun prints."""

from __future__ import annotations

from pilotage.distributed.launcher.job import Job

_TITLE = "poprun topology"
_HEADINGS = ("hosts", "ILDs", "instances", "replicas")
_STAGES = "Each instance is {stages} processes, one per stage of its replicas."


def topology(job: Job) -> str:
    """Draw which replicas belong to which instance on which host."""
    width = job.replicas * (len(str(job.replicas - 1)) + 3) - 1
    hosts_fit = all(len(host) + 2 <= _cell_width(len(job.hosts), width) for host in job.hosts)
    hosts = list(job.hosts) if hosts_fit else ["."] * len(job.hosts)
    rows = (hosts, _link_domains(job), _numbers(job.instances), _numbers(job.replicas))
    heading = max(map(len, _HEADINGS)) + 2
    total = heading + 1 + width
    lines = [f" {'=' * total}", f"|{_fitting(_TITLE, total - 2):^{total}}|", f"|{'=' * total}|"]
    for number, (name, cells) in enumerate(zip(_HEADINGS, rows, strict=True)):
        if number:
            lines.append(f"|{'-' * heading}|{'-' * width}|")
        lines.append(f"|{f' {name}':<{heading}}|{_row(cells, width)}|")
    lines.append(f" {'-' * total}")
    legend = [] if hosts_fit else [f"[{number}]: {host}" for number, host in enumerate(job.hosts)]
    stages = [_STAGES.format(stages=job.stages_per_replica)] if job.stages_per_replica > 1 else []
    return "\n".join([*lines, *legend, *stages])


def _link_domains(job: Job) -> list[str]:
    """One cell per domain if replicas divide evenly among them."""
    domains = job.link_domains or 1
    return [f"0-{domains - 1}"] if job.replicas % domains else _numbers(domains)


def _numbers(count: int) -> list[str]:
    return [str(number) for number in range(count)]


def _cell_width(cells: int, width: int) -> int:
    """The width of each cell; replicas divide evenly among instances, and these among hosts, so all rows align."""
    return (width + 1) // cells - 1


def _row(cells: list[str], width: int) -> str:
    return "|".join(f"{cell:^{_cell_width(len(cells), width)}}" for cell in cells)


def _fitting(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 3]}..."
