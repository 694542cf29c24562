"""Run a study: every arm with every seed, as far as it has not been run.

NAME is a file, or one of the folder `studies`. Each cell's line is kept as it ends; Ctrl-C loses
nothing, and the same command goes on. Exit code 1 where a cell failed.
"""

import argparse
import contextlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from vitreous.cli.options import add_json, print_json, warn
from vitreous.errors import ConfigError

if TYPE_CHECKING:
    from vitreous.studies.launch import Launcher
    from vitreous.studies.study import Study
    from vitreous.studies.summary import Summary

__all__ = ["add_arguments", "run"]


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """What `vitreous study` understands."""
    verb.add_argument("name", metavar="NAME", nargs="?", help="a study's name, or its file")
    verb.add_argument("--list", action="store_true", help="say which studies there are")
    verb.add_argument("--seeds", type=int, metavar="N", help="seeds 0 to N-1, not the study's own")
    verb.add_argument("--workers", type=int, metavar="N", help="processes (default: one per core)")
    verb.add_argument("--device", default="cpu", help="auto, cpu, cuda or mps (default: cpu)")
    verb.add_argument("--out", type=Path, help="results (default: results/NAME beside the study)")
    verb.add_argument("--fresh", action="store_true", help="put earlier results aside")
    add_json(verb)


def run(arguments: argparse.Namespace) -> int:
    """Run what is left, and say what came of it; returns the exit code."""
    from vitreous.studies.catalogue import find_study, results_of
    from vitreous.studies.launch import LocalProcesses
    from vitreous.studies.report import render

    if arguments.list:
        return show_all(json=arguments.json)
    if arguments.name is None:
        raise ConfigError("which study? name one, or use --list")
    study, path = find_study(arguments.name)
    if arguments.seeds is not None:
        study = replace(study, seeds=tuple(range(arguments.seeds)))
    out = arguments.out or results_of(path)
    try:
        failed = follow(study, out, LocalProcesses(arguments.workers, arguments.device), arguments)
    except KeyboardInterrupt:
        warn("stopped, and saved; the same command goes on")
        return 130
    summary = render(out)
    tell(summary, out, json=arguments.json)
    return int(failed)


def follow(study: "Study", out: Path, launcher: "Launcher", arguments: argparse.Namespace) -> bool:
    """Run, and show what happens; says whether a cell failed. Raises KeyboardInterrupt."""
    from vitreous.cli.progress import cells_listener
    from vitreous.studies.lines import Line
    from vitreous.studies.runner import run_cells
    from vitreous.training.interrupt import interrupts_held

    failed = False
    events = run_cells(study, out, launcher, fresh=arguments.fresh)
    with (
        interrupts_held() as interrupted,
        contextlib.closing(events),
        cells_listener(json=arguments.json) as listen,
    ):
        for event in events:
            if interrupted():
                raise KeyboardInterrupt
            listen(event)
            failed |= isinstance(event, Line) and bool(event.error)
    return failed


def show_all(*, json: bool) -> int:
    """Every study of the folder: its name, its question, and how much of it has been run."""
    from vitreous.studies.catalogue import find_study, results_of, study_files
    from vitreous.studies.lines import read_lines

    for name in study_files():
        study, path = find_study(name)
        before = read_lines(results_of(path))
        cells = list(study.cells)
        ended = {line.cell for line in before[1] if not line.error} if before else set()
        done = sum(cell.name in ended for cell in cells)
        if json:
            print_json(
                {"name": name, "question": study.question, "cells": len(cells), "finished": done}
            )
        else:
            print(f"{name:22} {done:3} of {len(cells):3} cells  {study.question}")
    return 0


def tell(summary: "Summary", out: Path, *, json: bool) -> None:
    """The last lines."""
    from vitreous.studies.report import PAGE, verdicts

    if json:
        print_json(summary.to_dict())
        return
    print(summary.header.question, *verdicts(summary), sep="\n  ")
    print(f"report         {out / PAGE}")
