"""Digits drawn with a virtual pen: ways of writing that MNIST hardly holds.

MNIST's writers are American. Elsewhere a 1 has a long upstroke or a foot, a 7 a bar, a 4 is open
and a 5 is one stroke. Each way is a few strokes through points; a hand bends them all its own way.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

__all__ = ["USUAL", "WAYS", "draw_digit", "stroke_points"]

Points = NDArray[np.float64]
"""(n, 2): x to the right and y down, both 0 to 1 in the digit's box."""

WAYS: Mapping[int, tuple[tuple[str, ...], ...]] = {
    # digit: its ways, each of strokes of points "x,y" in hundredths; "|" is a corner
    0: (
        ("55,0 15,20 5,60 35,98 80,80 92,35 60,2 45,3",),
        ("70,8 30,2 5,45 25,95 70,95 95,50 75,10 55,5",),
        ("50,0 90,30 90,75 45,100 8,65 15,20 52,2",),
        ("60,5 20,15 5,60 40,98 85,75 90,30 60,3 35,10 40,22",),
        ("55,0 15,20 5,60 35,98 80,80 92,35 60,2 45,3", "85,5 12,95"),
        ("60,0 20,10 5,50 25,95 70,98 95,60 80,15 55,2 75,12 100,5",),
        ("8,72 5,40 35,3 80,12 92,55 65,98 32,88 26,55 44,26",),
    ),
    1: (
        ("50,0 50,100",),
        ("50,0 47,50 50,100",),
        ("20,30 50,2|50,2 50,100",),
        ("5,45 55,0|55,0 52,100",),
        ("0,60 60,0|60,0 50,100",),
        ("20,25 50,2|50,2 50,98", "15,99 85,98"),
        ("15,30 55,2|55,2 50,97|50,97 20,98|20,98 85,97",),
        ("40,15 55,0|55,0 45,100",),
        ("5,98 50,0|50,0 55,100",),
        ("0,75 40,25 62,0|62,0 55,100",),
        ("8,85 58,2|58,2 50,100",),
    ),
    2: (
        ("8,25 30,3 70,3 88,28 60,62 8,97|8,97 95,95",),
        ("10,20 45,0 85,20 65,60 25,92 12,85 30,75 60,95 95,90",),
        ("5,8 50,3 90,10|90,10 45,55 5,97|5,97 60,93 98,97",),
        ("12,28 40,0 80,18 70,55 35,85 15,97 8,88 28,82 65,98 98,85",),
        ("15,15 55,0 82,25 50,70 10,97|10,97 50,97 85,94 95,80",),
        ("20,35 25,5 70,0 75,35 30,85 10,98 12,82 45,85 98,98",),
        ("5,15 40,0 70,8 65,45 20,95|20,95 60,88 100,95",),
    ),
    3: (
        ("10,12 45,0 82,18 75,40 40,48|40,48 85,58 88,85 50,100 8,88",),
        ("8,4 85,3|85,3 42,40|42,40 85,52 90,80 50,100 8,90",),
        ("15,8 60,0 80,25 45,46 35,47 60,48 92,68 70,97 30,99 5,85",),
        ("12,15 40,0 78,12 70,40 40,50 35,45 45,44 85,60 75,95 30,100 10,85",),
        ("20,5 60,0 75,18 50,40 40,45|40,45 80,60 70,95 20,100 5,90",),
    ),
    4: (
        ("28,2 8,58|8,58 92,54", "70,15 62,100"),
        ("72,0 5,66|5,66 96,64", "72,0 70,100"),
        ("45,0 10,62|10,62 95,58", "62,32 55,100"),
        ("12,5 10,40 35,55 80,45", "85,0 80,50 75,100"),
        ("55,0 5,60|5,60 90,60", "60,40 60,100"),
        ("20,0 15,50|15,50 90,48", "80,0 72,100"),
        ("75,100 75,0|75,0 5,70|5,70 98,68",),
        ("30,0 12,58|12,58 50,48 82,56 78,100",),
        ("22,0 10,62|10,62 55,52 80,50", "85,28 70,100"),
        ("35,0 5,60|5,60 60,55 98,50", "80,35 60,70 55,100"),
        ("20,5 15,45 45,50 75,40", "80,5 78,60 60,100 30,95"),
        ("40,2 6,60|6,60 75,40 98,8 85,2 62,50 45,100",),
        ("8,22 14,50 38,56 78,28|78,28 80,0", "78,0 98,100"),
        ("10,8 5,45 30,60 72,40", "70,0 78,45 95,100"),
    ),
    5: (
        ("22,3 15,44|15,44 50,36 90,60 75,95 35,100 6,90", "22,3 90,2"),
        ("85,3 25,4|25,4 18,45|18,45 60,38 92,68 60,98 8,92",),
        ("88,5 50,2 25,15 25,40 65,50 85,75 60,98 12,92",),
        ("15,5 20,45|20,45 60,40 82,70 55,98 5,95", "15,5 95,0"),
        ("30,0 22,40|22,40 70,45 78,75 45,100 5,88", "28,3 60,6 98,0"),
        ("95,2 30,6|30,6 22,42|22,42 62,52 66,85 30,100 2,92",),
        ("98,0 42,10|42,10 34,45|34,45 62,60 58,92 20,100 0,88",),
        ("80,2 30,8 22,38 70,55 75,85 40,100 10,92",),
        ("90,0 35,5|35,5 28,45 75,60 60,100 5,98",),
    ),
    6: (
        ("72,2 30,30 8,70 35,99 82,85 80,58 45,52 12,72",),
        ("60,0 15,45 10,85 50,100 90,75 60,50 15,70",),
        ("85,8 45,5 12,45 10,80 45,100 85,82 75,55 35,55 12,75",),
        ("55,0 20,40 5,80 30,100 70,90 65,62 30,65 10,85",),
    ),
    7: (
        ("5,5 92,4|92,4 38,100",),
        ("5,5 92,4|92,4 38,100", "22,50 80,47"),
        ("5,22 8,4|8,4 92,6|92,6 40,100",),
        ("3,15 25,2 60,10 95,2|95,2 55,50 42,100", "25,52 82,48"),
        ("5,8 88,5|88,5 60,45 50,100",),
        ("5,20 8,5|8,5 50,8 92,4|92,4 45,100", "30,55 85,50"),
        ("0,25 15,5 55,15 92,2|92,2 55,60 45,100", "28,55 75,50"),
        ("10,5 85,8 70,45 40,100", "20,48 85,42"),
    ),
    8: (
        ("78,15 45,0 18,20 48,46 85,75 50,100 14,78 45,50 82,22 70,6",),
        ("50,48 18,25 50,0 82,24 50,48 12,75 50,100 88,75 50,48",),
        ("85,8 50,2 20,18 40,42 78,65 70,95 30,98 20,70 60,42 88,12",),
        ("60,0 25,12 35,38 75,55 80,88 40,100 15,75 45,50 80,30 65,2",),
        ("22,3 20,97|22,5 70,3 78,28 30,48|30,48 88,60 80,95 20,97",),
        ("90,5 50,55 22,85 48,100 75,82 42,45 12,8",),
        ("75,5 30,0 22,28 60,50 75,80 45,100 18,82 40,52 80,12",),
    ),
    9: (
        ("85,18 50,0 14,22 40,50 82,28|85,15 80,100",),
        ("82,22 55,0 15,20 30,48 75,38 86,15 84,70 55,100 15,90",),
        ("88,10 50,2 15,25 35,50 80,30|88,8 70,60 55,100",),
        ("55,48 15,35 30,2 80,5 82,35 50,50|80,30 72,100",),
        ("85,20 50,0 12,25 42,48 85,20|85,20 85,75 50,100 20,92 30,75",),
        ("80,15 45,0 15,22 40,45 80,18|82,12 60,100",),
        ("35,100 38,10 60,0 88,12 80,38 55,46 30,42",),
        ("45,100 50,40|50,40 20,25 40,0 80,5 75,35 50,42",),
        ("80,8 45,0 15,18 30,42 65,40 82,15|82,10 62,100",),
    ),
}

USUAL = (5, 8, 5, 4, 7, 7, 4, 6, 4, 6)
"""How many of each digit's ways come first and are usual; the others are rare, or from cheques."""


def stroke_points(text: str, bend: Points) -> list[Points]:
    """The curves of a stroke: smooth through the points between corners, bent by a hand."""
    curves = []
    for part in text.split("|"):
        points = np.array([[float(n) / 100 for n in point.split(",")] for point in part.split()])
        moved = points + bend_at(points, bend)
        curves.append(moved if len(moved) < 3 else smooth(moved))
    return curves


def bend_at(points: Points, bend: Points) -> Points:
    """How far a hand moves a point: three slow waves over the box, the same for equal points."""
    phase = points @ bend[:2] + bend[2]
    return (
        np.stack([np.sin(phase[:, :3]).sum(axis=1), np.sin(phase[:, 3:]).sum(axis=1)], axis=1)
        * (bend[3, 0])
    )


def smooth(points: Points) -> Points:
    """A Catmull-Rom curve through the points, eight steps between each two."""
    ends = np.concatenate([2 * points[:1] - points[1:2], points, 2 * points[-1:] - points[-2:-1]])
    t = np.linspace(0, 1, 8, endpoint=False)[:, None, None]
    a, b, c, d = ends[:-3], ends[1:-2], ends[2:-1], ends[3:]
    curve = 0.5 * (
        2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t**2 + (3 * b - a - 3 * c + d) * t**3
    )
    return np.concatenate([curve.transpose(1, 0, 2).reshape(-1, 2), points[-1:]])


def draw_digit(
    digit: int, way: int, rng: np.random.Generator, *, height: int, aspect: float, pen: float
) -> NDArray[np.uint8]:
    """One digit, light on dark, at twice its height in pixels and then halved.

    `aspect` is its width as a share of its height, `pen` the stroke's width in pixels.
    """
    bend = rng.normal(size=(4, 6)) * 2.0
    bend[3] = rng.uniform(0.005, 0.035)
    pad = pen / 2 + 1.5
    tall, wide = height - pen, max(aspect * height - pen, 0.12 * height)
    size = (round(2 * (wide + 2 * pad)), round(2 * (height + 3)))
    image = Image.new("L", size)
    drawing = ImageDraw.Draw(image)
    scale = 2 * np.array([wide, tall])
    for stroke in WAYS[digit][way]:
        for curve in stroke_points(stroke, bend):
            dots = curve * scale + 2 * pad
            drawing.line(
                [tuple(dot) for dot in dots], fill=255, width=round(2 * pen), joint="curve"
            )
            for x, y in (dots[0], dots[-1]):
                drawing.ellipse((x - pen, y - pen, x + pen, y + pen), fill=255)
    return np.asarray(image.reduce(2))
