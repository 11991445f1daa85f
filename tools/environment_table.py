"""Write docs/environment.md, the table of every environment variable: python -m tools.environment_table.

The engine describes its own variables, where it reads them. The others are described here; a test searches the sources
for variables that are missing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from pilotage.options.environment import VARIABLES

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/environment.md"
READER = ROOT / "src/pilotage/options/environment.py"
LAUNCHERS = ROOT / "src/pilotage/distributed/environments"
LAUNCHER_VARIABLE = re.compile(r"(SLURM|OMPI|PMIX?|MPI|MV2|PALS|POPDIST|MASTER|WORLD|LOCAL)(_[A-Z]+)+|RANK")

POPTORCH = {
    "POPTORCH_CACHE_DIR": "Directory for compiled code, like `Options.enableExecutableCaching`.",
    "POPTORCH_DEFAULT_OPTIONS": "Options as JSON, applied when a `poptorch.Options` is created.",
    "POPTORCH_LOG_LEVEL": "Lowest level of PopTorch's log lines to show, by default WARN.",
    "POPTORCH_LOG_DEST": "Where lines of the logger `poptorch::backend` go: stdout, stderr (the default) or a file.",
    "POPART_LOG_LEVEL": "Lowest level of the engine's log lines to show.",
    "POPTORCH_IPU_MODEL": "1 runs on the CPU, and prints the prediction for an IPU.",
    "POPTORCH_SMALL_IPU_MODEL": "The same for 4 tiles.",
    "POPTORCH_IPU_MODEL_VERSION": "The IPU that is predicted: ipu1, ipu2 (the default) or ipu21.",
    "POPTORCH_EXPORT_PROTO_FILE": "File for the captured program, as JSON.",
    "POPTORCH_EXPORT_PROTO_FILE_AS_BINARY": "1 writes an archive with the constant tensors instead.",
    "POPTORCH_MAX_GRAPH_LEN": "Maximum number of characters of a graph in the log at level TRACE.",
    "POPLAR_ENGINE_OPTIONS": "JSON for Poplar's engine: autoReport and debug.allowOutOfMemory have an effect.",
    "PVTI_OPTIONS": '`{"enable": "true"}` writes tracepoints to a JSON file for Perfetto and chrome://tracing.',
}
GAUDI = {
    "PILOTAGE_HPU_ON": "What computes for the emulated card: cpu (the default) or cuda. `off` hides the card.",
    "PILOTAGE_HPU_RANDOM": "`cpu` draws random numbers on the CPU while a CUDA card computes.",
    "PILOTAGE_HPU_SUMMARY": "File for the summary of lazy mode, as JSON.",
    "PILOTAGE_HPU_ANNOUNCED": "Set by the first process of a job that logs the emulation, so that the others do not.",
    "PT_HPU_AUTOLOAD": "1 starts the emulated card with `import torch`.",
    "PT_HPU_GPU_MIGRATION": "1 maps CUDA to the card, for scripts that are written for CUDA.",
    "GPU_MIGRATION_LOG_LEVEL": "1 logs each call that is mapped, and what it becomes.",
    "PT_HPU_AUTOCAST_LOWER_PRECISION_OPS_LIST": "File with the operations that autocast runs in lower precision.",
    "PT_HPU_AUTOCAST_FP32_OPS_LIST": "File with the operations that autocast runs in float32.",
    "PT_HPU_ENABLE_REFINE_DYNAMIC_SHAPES": "Whether dynamic shapes are enabled at first. Stored without effect.",
    "PT_HPU_ENABLE_CACHE_METRICS": "1 adds the metric recipe_cache.",
    "PT_HPU_METRICS_GC_DETAILS": "1 adds the names of compiled graphs to their metric.",
    "PT_HPU_METRICS_FILE": "File for the metrics of the bridge.",
    "PT_HPU_METRICS_FILE_FORMAT": "json (the default) or text.",
    "PT_HPU_METRICS_DUMP_TRIGGERS": "When to write it: process_exit (the default), mark_step, metric_change, user.",
    "PT_HPU_EMULATE_DISTRIBUTED": "1 is refused: it would skip collectives.",
    "HABANA_VISIBLE_MODULES": "Numbers of the cards of this machine's processes, in the order of their local ranks.",
    "HLS_MODULE_ID": "The number of this process's card; set from its local rank.",
    "DATALOADER_FALLBACK_EN": "If it is empty, HabanaDataLoader raises instead of using torch's loader.",
}
STANDARD = ("XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "CXX", "GLIBC_TUNABLES", "PT_HPU_LAZY_MODE")
EXAMPLES = {"PILOTAGE_DATA": "Directory with the files of Fashion-MNIST."}
SECTIONS = {"PopTorch": POPTORCH, "Gaudi": GAUDI, "Examples": EXAMPLES}

INTRODUCTION = """# Environment variables

Every variable that Pilotage and its drop-ins read. An option given in a program takes precedence over a variable.

This page is generated: run `python -m tools.environment_table` after a change.
"""


def main() -> None:
    """Write the page."""
    PAGE.write_text(page())


def page() -> str:
    """The whole page, as Markdown."""
    parts = [INTRODUCTION, *engine_table()]
    for title, meanings in SECTIONS.items():
        parts += table(title, meanings)
    return "\n".join([*parts, *launcher_table()])


def engine_table() -> Iterator[str]:
    """The variables of the engine, as its one reader describes them."""
    yield "## The engine\n\n| variable | value | default | meaning |\n|---|---|---|---|"
    for each in VARIABLES:
        by_poprun = " Set by poprun." if each.is_internal else ""
        # A path may be broken between its parts: one that is not makes the table wider than the page.
        default = each.default.replace("/", "/<wbr>")
        yield f"| `{each.name}` | {each.type} | {default} | {each.meaning}{by_poprun} |"
    yield f"\nPilotage also reads {', '.join(f'`{name}`' for name in STANDARD)}, with their usual meanings.\n"


def table(title: str, meanings: dict[str, str]) -> Iterator[str]:
    """One section with the meaning of each variable."""
    yield f"## {title}\n\n| variable | meaning |\n|---|---|"
    for name, meaning in meanings.items():
        yield f"| `{name}` | {meaning} |"
    yield ""


def launcher_table() -> Iterator[str]:
    """The variables by which each launcher tells a process its rank."""
    yield "## Launchers\n\nA process learns its rank from the variables of the launcher that started it."
    yield "\n| launcher | variables |\n|---|---|"
    for name, variables in launchers().items():
        yield f"| {name} | {', '.join(f'`{each}`' for each in variables)} |"
    yield ""


def launchers() -> dict[str, list[str]]:
    """The variables of each launcher, by the name of its module."""
    found = {}
    for path in sorted(LAUNCHERS.glob("*.py")):
        variables = dict.fromkeys(name for name in texts(path) if LAUNCHER_VARIABLE.fullmatch(name))
        if variables and path.stem != "variables":
            found[path.stem] = [*variables]
    return found


def described() -> set[str]:
    """Every variable on the page."""
    return {
        *(each.name for each in VARIABLES),
        *(each for part in (*SECTIONS.values(), *launchers().values()) for each in part),
    }


def texts(path: Path) -> Iterator[str]:
    """The strings of a module."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


if __name__ == "__main__":
    main()
