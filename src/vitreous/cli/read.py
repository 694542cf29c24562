"""Read handwritten numbers in photographs, scans and drawings.

Gives the digits of each image, line after line, and says how sure it is. The weights come with the
package. Folders stand for the images in them, and - for an image on the standard input. A file that
cannot be read never stops the rest; exit code 1 where there was one.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitreous.cli.options import add_json, print_json, warn
from vitreous.errors import ConfigError, ImageError

if TYPE_CHECKING:
    from vitreous.frontends.decode import Source
    from vitreous.reading.reader import NumberReader
    from vitreous.reading.reading import Reading

__all__ = ["add_arguments", "run"]

SUFFIXES = frozenset(
    {".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm", ".pgm", ".pbm"}
)


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """What `vitreous read` understands."""
    verb.add_argument("files", metavar="FILE", nargs="+", help="image, folder, or - for stdin")
    verb.add_argument(
        "--boxes", metavar="OUT.png", type=Path, help="draw where each number and digit was found"
    )
    verb.add_argument("--model", metavar="RUN", type=Path, help="other weights than the package's")
    add_json(verb)


def run(arguments: argparse.Namespace) -> int:
    """Print what each file says; returns the exit code."""
    from vitreous.cli.progress import bar
    from vitreous.reading.reader import NumberReader

    files = list(expanded(arguments.files))
    if arguments.boxes and len(files) != 1:
        raise ConfigError(f"--boxes draws one image, and {len(files)} were given")
    reader = NumberReader.load(arguments.model)
    failed = False
    with bar("reading") as progress:
        for number, name in enumerate(files):
            failed |= not read_one(reader, name, arguments)
            if progress:
                progress(number + 1, len(files))
    return int(failed)


def expanded(names: Sequence[str]) -> Iterator[str]:
    """Files as they are, and the images of folders and of the folders in them, by name."""
    for name in names:
        if name == "-" or not Path(name).is_dir():
            yield name
            continue
        inside = sorted(p for p in Path(name).rglob("*") if p.suffix.lower() in SUFFIXES)
        if not inside:
            warn(f"{name}: no images are in this folder")
        yield from map(str, inside)


def read_one(reader: "NumberReader", name: str, arguments: argparse.Namespace) -> bool:
    """Read and print one file; False where it cannot be read."""
    try:
        source = sys.stdin.buffer.read() if name == "-" else name
        reading = reader.read([reader.prepare(source)])[0]
    except ImageError as error:
        sentence = str(error)
        if arguments.json:
            print_json({"file": name, "error": sentence})
        else:
            print(sentence if sentence.startswith(name) else f"{name}: {sentence}", flush=True)
        return False
    if arguments.json:
        print_json({"file": name, **reading.to_dict()})
    else:
        tell(name, reading)
    if arguments.boxes:
        draw_boxes(source, reading, arguments.boxes)
    return True


def tell(name: str, reading: "Reading") -> None:
    """One file in lines for a person."""
    if not reading.text:
        print(f"{name}: no number", flush=True)
    for line in reading.lines:
        doubt = "" if line.confidence >= 0.5 or not reading.rejected else ", not sure"
        print(f"{name}: {line.text} ({line.confidence:.1%}{doubt})", flush=True)
    if reading.rejected:
        warn(f"{name}: not sure enough; please check")
    for warning in reading.warnings:
        warn(f"{name}: {warning}")


def draw_boxes(source: "Source", reading: "Reading", out: Path) -> None:
    """The upright image with a box around each number and each digit, as a PNG file."""
    import io

    from PIL import Image, ImageDraw

    from vitreous.checkpoints.files import write_bytes
    from vitreous.frontends.decode import decode

    image = Image.fromarray(decode(source)).convert("RGB")
    drawing = ImageDraw.Draw(image)
    thick = max(1, max(image.size) // 500)
    for line in reading.lines:
        for digit in line.digits:
            outline(drawing, digit.box, "#1baf7a", thick)
        outline(drawing, line.box, "#eb6834", thick)
        drawing.text((line.box[0], max(0, line.box[1] - 14 * thick)), line.text, "#2a78d6")
    file = io.BytesIO()
    image.save(file, "PNG")
    write_bytes(out, file.getvalue())


def outline(drawing: Any, box: tuple[int, int, int, int], colour: str, thick: int) -> None:
    """A box of these sides."""
    left, top, width, height = box
    drawing.rectangle((left, top, left + width - 1, top + height - 1), outline=colour, width=thick)
