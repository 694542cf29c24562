"""What a model has learned before its first block: position embeddings and patch filters."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from vitreous.errors import ConfigError
from vitreous.models.classifier import Classifier
from vitreous.nn.patches import PatchEmbed

__all__ = ["patch_filters", "position_similarity", "principal_filters"]


@torch.no_grad()
def position_similarity(model: Classifier) -> Float[Tensor, "row col row2 col2"]:
    """Cosine similarity of each patch's position embedding (row, col) with every other's.

    Prefix tokens are left out. Raises ConfigError where positions add nothing to a token: there are
    none, or they are rotary. Source: ViT, figure 7 (arXiv 2010.11929).
    """
    config = model.config
    like = next(model.parameters())
    added = model.pos_embed(config.grid, like=like).added
    if added is None:
        raise ConfigError(f"positions={config.positions!r} add nothing to a token to compare")
    rows = F.normalize(added[config.prefix_tokens :].float(), dim=1)
    return (rows @ rows.mT).unflatten(1, config.grid).unflatten(0, config.grid)


@torch.no_grad()
def patch_filters(model: Classifier) -> Float[Tensor, "d c py px"]:
    """What each number of a token looks for in a patch: one filter a number.

    Of a convolution stem these are the kernels of its first convolution.
    """
    stem = model.patch_embed
    if isinstance(stem, PatchEmbed):
        return stem.kernel(stem.proj.weight)
    first = next(layer for layer in stem.convolutions if isinstance(layer, nn.Conv2d))
    return first.weight


@torch.no_grad()
def principal_filters(
    filters: Float[Tensor, "d c py px"], count: int = 28
) -> tuple[Float[Tensor, "some c py px"], Float[Tensor, " some"]]:
    """The directions in which filters differ most, and the share of their variance in each.

    Source: ViT, figure 7 (arXiv 2010.11929).
    """
    flat = filters.float().flatten(1)
    _, spread, directions = torch.linalg.svd(flat - flat.mean(dim=0), full_matrices=False)
    shares = spread.square() / spread.square().sum().clamp_min(1e-30)
    return directions[:count].unflatten(1, filters.shape[1:]), shares[:count]
