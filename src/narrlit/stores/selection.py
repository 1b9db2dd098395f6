"""Which vectors shall go; a module apart, so that a command can offer the choice before torch is loaded."""

from dataclasses import dataclass

from narrlit.errors import OptionError


@dataclass(frozen=True)
class Selection:
    """What `prune` removes; nothing selected: what killed processes have left, and vectors that a store holds twice.

    Attributes:
        model: of prune: whole stores of this model, by the name that ls tells.
        older_than: of prune: whole stores that have not changed for so many days.
        broken: of prune: files in which verify finds a fault; what they held is made anew when it is needed.
        merge: of prune: small shards, whose vectors are written into few large ones first.
    """

    model: str | None = None
    older_than: float | None = None
    broken: bool = False
    merge: bool = False

    def __post_init__(self) -> None:
        """Check what goes together.

        Raises:
            OptionError: naming the options.
        """
        if self.older_than is not None and not 0 < self.older_than < float("inf"):
            raise OptionError(f"--older-than {self.older_than}: a number of days above 0 is needed")
        stores = "--model or --older-than" if self.model is not None or self.older_than is not None else None
        chosen = [name for name in (stores, "--broken" * self.broken, "--merge" * self.merge) if name]
        if len(chosen) > 1:
            raise OptionError(f"{' and '.join(chosen)} have no use together: run one after the other")
