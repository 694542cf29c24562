"""The price of a wrong string: token by token, and over all alignments with the columns."""

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

__all__ = ["IGNORED", "ctc_loss", "string_log_probability", "writing_loss"]

IGNORED = -100
"""Marks places behind a string's end, which cost nothing."""


def writing_loss(
    scores: Float[Tensor, "b q classes"], wanted: Int[Tensor, "b q"], *, smoothing: float = 0.0
) -> Float[Tensor, ""]:
    """Mean cross-entropy in nats of the next token, STOP included; IGNORED places are left out."""
    return F.cross_entropy(
        scores.float().flatten(0, 1),
        wanted.flatten(),
        ignore_index=IGNORED,
        label_smoothing=smoothing,
    )


def ctc_loss(
    scores: Float[Tensor, "b n classes"],
    real: Bool[Tensor, "b n"],
    digits: Int[Tensor, "b q"],
    lengths: Int[Tensor, " b"],
) -> Float[Tensor, ""]:
    """Mean over strings of -log p(string) under CTC, divided by the string's length or one.

    The last class is blank. A string that has too few columns costs nothing. Source: Graves et al.
    2006.
    """
    return F.ctc_loss(
        scores.float().log_softmax(dim=-1).transpose(0, 1),
        digits,
        real.sum(dim=1),
        lengths,
        blank=scores.shape[-1] - 1,
        zero_infinity=True,
    )


def string_log_probability(
    scores: Float[Tensor, "b n classes"],
    real: Bool[Tensor, "b n"],
    digits: Int[Tensor, "b q"],
    lengths: Int[Tensor, " b"],
) -> Float[Tensor, " b"]:
    """log p(string) under CTC: -inf where the string does not fit the columns."""
    return -F.ctc_loss(
        scores.float().log_softmax(dim=-1).transpose(0, 1),
        digits,
        real.sum(dim=1),
        lengths,
        blank=scores.shape[-1] - 1,
        reduction="none",
    )
