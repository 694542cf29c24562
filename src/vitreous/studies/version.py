"""Which code made a number: a hash of what decides it, blind to comments and layout."""

import io
import tokenize
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import vitreous

__all__ = ["code_version", "essence"]

DECIDING = {
    "RandomScores": ("nn/attention.py", "protocol/seeds.py", "studies/scores.py"),
    "ViTConfig": (
        "data/augment.py",
        "data/batches.py",
        "data/dataset.py",
        "frontends/image.py",
        "models/classifier.py",
        "nn/*.py",
        "objectives/classification.py",
        "protocol/seeds.py",
        "protocol/splits.py",
        "protocol/stopping.py",
        "studies/material.py",
        "training/evaluate.py",
        "training/loop.py",
        "training/optimizers.py",
        "training/precision.py",
        "training/run.py",
    ),
}
"""For each kind of base the files without which a cell would come to another number. Settings are
in the cell's own name."""

SAME_NUMBERS: Mapping[str, str] = {"cdfbd57f099a": "73d188797c03", "bf324f12ff44": "a3e88998ac1d"}
"""Versions that come to the very numbers of an older one, and so bear its name: they add what no
shipped study asks for. Each was held to committed cells, run again; a slow test repeats one."""

INVISIBLE = {tokenize.COMMENT, tokenize.NL, tokenize.ENDMARKER}
MARKS = {tokenize.NEWLINE: ";", tokenize.INDENT: "{", tokenize.DEDENT: "}"}


def code_version(kind: str) -> str:
    """Twelve hexadecimal digits that change when the code that makes results of a kind does.

    A change that is known to leave every number as it was is entered in `SAME_NUMBERS`.
    """
    root = Path(vitreous.__file__).parent
    paths = sorted(path for pattern in DECIDING[kind] for path in root.glob(pattern))
    whole = "\n".join(essence(path.read_text(encoding="utf-8")) for path in paths)
    version = sha256(whole.encode()).hexdigest()[:12]
    return SAME_NUMBERS.get(version, version)


def essence(source: str) -> str:
    """A program's text without comments, docstrings and layout.

    >>> essence('def f(x):  # why\\n    "what"\\n    return x\\n')
    'def f(x):;{;return x;}'
    """
    kept, begins = [], True
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in MARKS:
            kept.append(MARKS[token.type])
            begins = True
        elif token.type not in INVISIBLE and not (begins and token.type == tokenize.STRING):
            apart = kept and kept[-1][-1:].isidentifier() and token.string[:1].isidentifier()
            kept.append(" " * bool(apart) + token.string)
            begins = False
    return "".join(kept)
