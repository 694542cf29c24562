"""A reader of random weights: laws of search hold for it as for a trained one."""

import torch

from vitreous.models.reader import Memory, Reader, ReaderConfig, build_reader

TINY = ReaderConfig(stem=(4, 8, 8), width=16, depth=1, heads=2, mlp_ratio=2.0, longest=6)


def tiny_reader(seed: int = 0, sharpness: float = 4.0) -> Reader:
    """Sharper scores than fresh weights give, so that strings differ much in probability."""
    torch.manual_seed(seed)
    reader = build_reader(TINY).eval()
    with torch.no_grad():
        reader.head.weight *= sharpness
        reader.head.bias.normal_()
        reader.ctc.weight *= sharpness
    return reader


def some_lines(count: int = 3, width: int = 40, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    luck = torch.Generator().manual_seed(seed)
    images = torch.rand(count, 1, 32, width, generator=luck)
    widths = torch.tensor([width - 4 * (row % 4) for row in range(count)])
    return images, widths


def memory_of(reader: Reader, count: int = 3, seed: int = 0) -> Memory:
    with torch.no_grad():
        return reader.see(*some_lines(count, seed=seed))
