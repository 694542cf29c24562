"""Write a study's report anew from its raw lines, and print what it says.

It may be done at any time, also while the study runs. STUDY is a study's name, its file, or the
folder with its results.
"""

import argparse
from pathlib import Path

from vitreous.cli.options import add_json

__all__ = ["add_arguments", "run"]


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """What `vitreous report` understands."""
    verb.add_argument("study", metavar="STUDY", help="a study's name, file or folder of results")
    add_json(verb)


def run(arguments: argparse.Namespace) -> int:
    """Write the report; returns the exit code."""
    from vitreous.cli.study import tell
    from vitreous.studies.report import render

    out = folder_of(arguments.study)
    tell(render(out), out, json=arguments.json)
    return 0


def folder_of(name: str) -> Path:
    """Where the results of a name, file or folder are; raises ConfigError for none of these."""
    from vitreous import settings
    from vitreous.studies.catalogue import results_of, study_files
    from vitreous.studies.lines import LINES

    path = Path(name)
    if (path / LINES).exists():
        return path
    return results_of(
        path if path.suffix == ".py" else settings.named("study", name, study_files())
    )
