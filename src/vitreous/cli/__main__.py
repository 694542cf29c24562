"""`vitreous VERB ...`. Help and mistakes are answered before anything heavy is loaded."""

import argparse
import sys
from collections.abc import Sequence

import vitreous
from vitreous.cli import (
    convert,
    doctor,
    draw,
    evaluate,
    export,
    look,
    measure,
    plan,
    predict,
    presets,
    probe,
    read,
    report,
    serve,
    study,
    train,
    tune,
    verify,
)
from vitreous.errors import VitreousError

__all__ = ["main", "parser"]

VERBS = {
    "train": train,
    "evaluate": evaluate,
    "predict": predict,
    "look": look,
    "read": read,
    "verify": verify,
    "probe": probe,
    "export": export,
    "plan": plan,
    "draw": draw,
    "measure": measure,
    "presets": presets,
    "convert": convert,
    "doctor": doctor,
    "serve": serve,
    "study": study,
    "report": report,
    "tune": tune,
}

EXITS = """\
exit codes: 0 all is well · 1 something failed, and a sentence says what (or verify found a
difference) · 2 the command line was not understood · 130 stopped by Ctrl-C, and nothing was lost"""


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    whole = argparse.ArgumentParser(
        prog="vitreous", description="Vision Transformers that can be seen through.", epilog=EXITS
    )
    whole.add_argument("--version", action="version", version=f"vitreous {vitreous.__version__}")
    verbs = whole.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name, module in VERBS.items():
        summary = (module.__doc__ or "").splitlines()[0]
        verb = verbs.add_parser(name, help=summary, description=module.__doc__, epilog=EXITS)
        module.add_arguments(verb)
    return whole


def main(words: Sequence[str] | None = None) -> int:
    """Run one verb; returns the exit code."""
    arguments = parser().parse_args(words)
    try:
        return VERBS[arguments.verb].run(arguments)
    except VitreousError as error:
        print(f"vitreous {arguments.verb}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"vitreous {arguments.verb}: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has left; there is nobody to tell
        return 0


if __name__ == "__main__":
    sys.exit(main())
