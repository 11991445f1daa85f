"""Train, evaluate and predict: python examples/fashion_mnist train | evaluate | predict IMAGE… | all."""

import sys
from pathlib import Path

# The data set lies beside this folder.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))


def main() -> int:
    """Run the command line; the status is 0, or 1 for a failure, 2 for a wrong option, 130 for Ctrl-C."""
    # Imported inside: torch takes a second or two, and Ctrl-C must find us ready even then.
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
    except KeyboardInterrupt:
        # Where Ctrl-C hits an `exec`, as in the making of a dataclass, Python marks the process to die of the signal
        # even though it is caught here. A fresh `exec` takes the mark away, and the status below is what is seen.
        exec("")
        print("\nfashion_mnist: interrupted; no half-written file is left.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
