"""When to stop, and which epoch was best."""

from dataclasses import dataclass

from vitreous.errors import ConfigError

__all__ = ["Patience"]


@dataclass
class Patience:
    """Counts epochs in a row without a better loss; remembers the best one.

    An epoch is better when its loss is lower than the best one by more than `min_delta`. With
    patience 2 the second epoch in a row that is not better stops the run; without patience nothing
    does. Plain numbers, so that a run that goes on after a stop goes on here too.

    >>> patience = Patience(limit=2)
    >>> [patience.update(loss) for loss in (1.0, 0.9, 0.95, 0.96)]
    [True, True, False, False]
    >>> patience.exhausted, patience.best_epoch
    (True, 2)
    """

    limit: int | None = None
    min_delta: float = 0.0
    epoch: int = 0
    best: float = float("inf")
    best_epoch: int = 0

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise ConfigError(f"patience={self.limit} must be at least 1, or none")

    def update(self, loss: float) -> bool:
        """Take the next epoch's loss; True where it is the new best. NaN is never the best."""
        self.epoch += 1
        if not loss < self.best - self.min_delta:
            return False
        self.best, self.best_epoch = loss, self.epoch
        return True

    @property
    def exhausted(self) -> bool:
        """Whether the run should stop now."""
        return self.limit is not None and self.epoch - self.best_epoch >= self.limit
