"""Train, evaluate and predict: python examples/fashion_mnist train | evaluate | predict IMAGE… | all."""

import sys
from pathlib import Path

# The data set is in the folder of the examples, which is not installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))


def main() -> int:
    """Run the command line; the status is 0, or 1 for a failure, 2 for a wrong option, 130 for Ctrl-C."""
    # Imported inside: importing torch takes a second or two, and Ctrl-C must work during it.
    try:
        from command_line import complain, parsed

        command, settings = parsed()
        from tutorial import run

        from pilotage.errors import PilotageError

        try:
            run(command, settings)
        except (PilotageError, OSError) as error:
            complain(str(error))
            return 1
        return 0
    except KeyboardInterrupt:
        # If Ctrl-C arrives during an `exec`, as when a dataclass is created, Python marks the process to die of the
        # signal although it is caught here. Another `exec` clears the mark, so that the status below is returned.
        exec("")
    # After `except`, where the interrupted frames are gone: a progress bar that one of them held has printed its end.
    print("\nfashion_mnist: interrupted; no half-written file is left.", file=sys.stderr)
    return 130


if __name__ == "__main__":
    sys.exit(main())
