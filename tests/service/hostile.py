"""Uploads that nobody well-meaning would send: each a pure function of its number."""

import io
import random
import struct
import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

from PIL import Image

from tests.service.bombs import chunk, solid_png
from tests.service.number_images import encoded, number_image

COUNT = 2000
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM")
STARTS = (
    b"\x89PNG\r\n\x1a\n",
    b"\xff\xd8\xff\xe0",
    b"RIFF\xff\xff\xff\x7fWEBPVP8 ",
    b"GIF89a",
    b"BM",
    b"II*\0\x08\0\0\0",
    b"MM\0*\0\0\0\x08",
    b"P6 ",
    b"%PDF-1.7\n",
    b"PK\x03\x04",
    b"<svg xmlns='http://www.w3.org/2000/svg'>",
    b"%!PS-Adobe-3.0 EPSF-3.0\n",
)
NAMES = ("a.png", "../../etc/passwd", "\\\\host\\share", "x" * 3000, "a\0b", "\u202egnp.exe", "")


@cache
def sound(kind: str, text: str = "407") -> bytes:
    return encoded(number_image(text).convert("RGB"), kind)


def cut(dice: random.Random) -> bytes:
    data = sound(dice.choice(FORMATS))
    return data[: dice.randrange(len(data))]


def flipped(dice: random.Random) -> bytes:
    """A few bytes are others, often among the first, where sizes and offsets stand."""
    data = bytearray(sound(dice.choice(FORMATS)))
    for _ in range(dice.choice((1, 2, 8, 64))):
        data[dice.randrange(min(len(data), dice.choice((64, len(data)))))] = dice.randrange(256)
    return bytes(data)


def noise(dice: random.Random) -> bytes:
    return dice.choice(STARTS) + dice.randbytes(dice.choice((0, 1, 30, 2000)))


def doubled(dice: random.Random) -> bytes:
    """Two files in one, or a file within another."""
    one, other = sound(dice.choice(FORMATS)), sound(dice.choice(FORMATS))
    at = dice.randrange(len(one))
    return one + other if dice.random() < 0.5 else one[:at] + other + one[at:]


def lying_size(dice: random.Random) -> bytes:
    """A header that promises far more pixels, or fewer, than there are."""
    x, y = (dice.choice((0, 1, 7, 500, 6000, 65_535, 2**31 - 1)) for _ in range(2))
    kind = dice.choice(("PNG", "GIF", "BMP", "PPM"))
    if kind == "PPM":
        return b"P%d %d %d 255\n" % (dice.choice((1, 2, 3, 4, 5, 6)), x, y) + dice.randbytes(90)
    data = bytearray(sound(kind))
    if kind == "PNG":
        data[16:24] = struct.pack(">II", x, y)
        data[29:33] = struct.pack(">I", zlib.crc32(data[12:29]))
    elif kind == "GIF":
        data[6:10] = struct.pack("<HH", x & 0xFFFF, y & 0xFFFF)
    else:
        data[18:26] = struct.pack("<ii", x, -y if dice.random() < 0.5 else y)
    return bytes(data)


def odd_chunks(dice: random.Random) -> bytes:
    """A PNG with chunks that squeeze a lot into little, or make no sense."""
    data = sound("PNG")
    packed = zlib.compress(bytes(dice.choice((10, 3_000_000))), 9)
    kind = dice.choice((b"zTXt", b"iCCP", b"iTXt", b"tRNS", b"PLTE", b"eXIf", b"acTL", b"IHDR"))
    body = {b"zTXt": b"k\0\0" + packed, b"iCCP": b"p\0\0" + packed}.get(kind, dice.randbytes(33))
    return data[:33] + chunk(kind, body) * dice.choice((1, 50)) + data[33:]


def odd_shape(dice: random.Random) -> bytes:
    """Sound files of shapes and modes that few expect."""
    mode = dice.choice(("1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16", "F"))
    size = dice.choice(((1, 1), (1, 3000), (3000, 1), (2, 2), (37, 500)))
    image = Image.new(mode, size, dice.choice((0, 1)))
    return encoded(image, "TIFF" if mode in ("CMYK", "F", "LA") else "PNG")


def many_frames(dice: random.Random) -> bytes:
    frames = [Image.new("P", (20, 20), shade) for shade in range(dice.choice((2, 60)))]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    return file.getvalue()


def turned(dice: random.Random) -> bytes:
    """EXIF of any kind, in a file that is sound."""
    exif = Image.Exif()
    exif[0x0112] = dice.choice((0, 3, 6, 9, 65_535))
    file = io.BytesIO()
    raw = exif.tobytes()
    if dice.random() < 0.5:
        raw = raw[: dice.randrange(6, len(raw))] + dice.randbytes(20)
    number_image("407").save(file, "JPEG", exif=raw)
    return file.getvalue()


def bomb(dice: random.Random) -> bytes:
    return solid_png(dice.choice((8000, 14_000, 30_000)))


FILES: tuple[Callable[[random.Random], bytes], ...] = (
    cut,
    cut,
    flipped,
    flipped,
    flipped,
    noise,
    doubled,
    lying_size,
    lying_size,
    odd_chunks,
    odd_shape,
    many_frames,
    turned,
    bomb,
)


def form(data: bytes, dice: random.Random) -> dict[str, Any]:
    """A form that is sound, or nearly so."""
    field = dice.choice(("image",) * 6 + ("Image", "", "image\0", "x" * 9000))
    name = dice.choice(NAMES).encode(errors="replace")
    disposition = b'Content-Disposition: form-data; name="%s"; filename="%s"' % (
        field.encode(),
        name,
    )
    head = dice.choice((disposition,) * 6 + (b"", b"X: " + b"y" * 9000, disposition[:20], b"\xff:"))
    edge = dice.choice((b"--e",) * 6 + (b"--f", b"-", b""))
    end = dice.choice((b"\r\n--e--\r\n",) * 4 + (b"", b"\r\n--e", b"\r\n--e--" * 50))
    kind = dice.choice(("boundary=e",) * 6 + ("", "boundary=", "boundary=" + "z" * 999))
    headers = {"Content-Type": f"multipart/form-data; {kind}"}
    return {"content": edge + b"\r\n" + head + b"\r\n\r\n" + data + end, "headers": headers}


def hostile(number: int) -> dict[str, Any]:
    """What to send, for one of `COUNT` numbers."""
    dice = random.Random(number)
    data = dice.choice(FILES)(dice)
    if dice.random() < 0.4:
        return form(data, dice)
    kind = dice.choice(("image/png", "text/html", "application/json", "multipart/x", "\x7f"))
    return {"content": data, "headers": {"Content-Type": kind}}
