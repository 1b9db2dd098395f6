"""narrlit push: upload a model to a hub."""

import narrlit


def push(model: str, name: str, *, public: bool = False, dry_run: bool = False) -> None:
    """Upload a model to a hub, privately; a model that is no exported folder is exported first.

    The hub is Hugging Face's, or that of the environment variable HF_ENDPOINT. The token comes from HF_TOKEN or from
    `hf auth login`.

    Args:
        model: an exported folder; or a run, a checkpoint or any other model that `narrlit export` takes.
        name: name of the model on the hub, OWNER/NAME; an existing model is updated.
        public: everybody can see the model.
        dry_run: only list the files with their sizes in bytes; nothing is sent.
    """
    print(narrlit.push(model, name, private=not public, dry_run=dry_run))
