"""Private names of datasets and huggingface_hub, checked with datasets 5.2 and huggingface_hub 2.4."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def offline() -> Iterator[None]:
    """Read data sets from local folders and the cache inside the block, and never from the network.

    Both packages read the variable `HF_HUB_OFFLINE` once, when they are imported. An option of `load_dataset` would not
    reach the calls inside MTEB; a public function that switches the mode would replace this.
    """
    from datasets import config
    from huggingface_hub import constants

    before = config.HF_HUB_OFFLINE, constants.HF_HUB_OFFLINE
    config.HF_HUB_OFFLINE = constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        config.HF_HUB_OFFLINE, constants.HF_HUB_OFFLINE = before
