"""The price of a wrong class."""

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

__all__ = ["classification_loss"]


def classification_loss(
    logits: Float[Tensor, "b classes"], labels: Int[Tensor, " b"], *, smoothing: float = 0.0
) -> Float[Tensor, ""]:
    """Mean cross-entropy in nats, in float32 whatever the logits are.

    With smoothing s the target is 1 - s on the label, and s is shared evenly by every class.
    Source: label smoothing of Szegedy et al., section 7 (arXiv 1512.00567).
    """
    return F.cross_entropy(logits.float(), labels, label_smoothing=smoothing)
