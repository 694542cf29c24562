"""Files that are small, and would be large if they were decoded."""

import struct
import zlib


def solid_png(side: int) -> bytes:
    """A whole grey PNG of side × side pixels (in hundreds), of a few hundred kilobytes at most."""
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = squeeze.compress(bytes(side + 1) * 100) + squeeze.flush(zlib.Z_FULL_FLUSH)
    checksum = ((side + 1) * side % 65521) << 16 | 1  # Adler-32 of so many zeros
    pixels = b"\x78\xda" + block * (side // 100) + squeeze.flush() + struct.pack(">I", checksum)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        chunk(kind, data)
        for kind, data in (
            (b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)),
            (b"IDAT", pixels),
            (b"IEND", b""),
        )
    )


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
