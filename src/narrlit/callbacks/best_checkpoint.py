"""The best checkpoint, also over a resumed run."""

from pathlib import Path
from typing import Any

from lightning.pytorch.callbacks import ModelCheckpoint


class BestCheckpoint(ModelCheckpoint):
    """ModelCheckpoint that remembers the best so far when a fit goes on in another directory.

    Lightning forgets it then, and would call the first epoch after the resumption the best. The old file stays where it
    is; if it is gone, so is its score.
    """

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over the best score and its file, wherever it lies."""
        if not Path(state_dict["best_model_path"]).is_file():
            return
        super().load_state_dict({**state_dict, "dirpath": self.dirpath})
