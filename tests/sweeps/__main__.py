"""Sweep over torch's test databases, print the results, and write the page of supported operations.

``python tests/sweeps`` does all of it; ``python tests/sweeps --only inference addmm nn.LSTM`` compares some entries.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings

import torch
from sweep.document import PAGE, page, read_results, table, write_results
from sweep.entries import entries
from sweep.exceptions import Exceptions
from sweep.measures import Measure, Tally, sweep

import poptorch
from pilotage.capture.functions.refusals import ADVICE


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("entries", nargs="*", help="names of entries; nothing is written where some are given")
    parser.add_argument("--only", choices=[measure.value for measure in Measure], help="only one measure")
    given = parser.parse_args()
    torch.set_num_threads(1)
    poptorch.setLogLevel("ERR")
    warnings.simplefilter("ignore")
    exceptions = Exceptions.read()
    numbers, problems = {}, []
    for measure in [Measure(given.only)] if given.only else Measure:
        for kind in ("operation", "module"):
            start = time.process_time()
            tally = Tally()
            for entry in entries():
                if entry.kind == kind and (not given.entries or entry.name in given.entries):
                    tally.add(sweep([entry], measure, exceptions, all_samples=True))
            problems += tally.problems(exceptions, complete=measure is Measure.INFERENCE)
            numbers[f"{kind}s, {measure.value}"] = tally.numbers(exceptions)
            print(f"{kind}s, {measure.value}: {time.process_time() - start:.0f} s; close: {', '.join(tally.close())}")
    print(table(numbers))
    print("\n".join(problems))
    if problems or given.only or given.entries:
        return len(problems) > 0
    write_results(numbers)
    PAGE.write_text(page(read_results(), exceptions, ADVICE), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
