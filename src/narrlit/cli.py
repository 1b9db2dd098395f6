"""The front door: finds the command, and loads nothing that it doesn't need."""

import sys
from collections.abc import Sequence
from importlib import import_module

from narrlit import __version__
from narrlit.errors import NarrlitError

TRAINING = {
    "fit": "train an encoder: narrlit fit --config configs/quickstart.yaml",
    "validate": "judge the validation triples with a checkpoint",
    "test": "judge the test triples with a checkpoint",
    "predict": "answer triples with a checkpoint",
}
OTHERS = {
    "embed": "vectors of stories, to .npy, .jsonl or .parquet",
    "evaluate": "accuracy over labelled triples, of a model or a baseline",
    "judge": "let a language model that sees the similarities say which candidate is closer",
    "export": "a sentence-transformers folder from a run or a checkpoint",
    "submit": "write or check a submission to the shared task",
    "crossval": "k-fold cross-validation of a config, folds grouped by story",
    "ablate": "a system and its ablations in one table, with intervals and paired tests",
    "tune": "search a config's best settings on one fold, judge them on the others",
    "fuse": "weights of stories' texts and views compared on labelled triples",
    "views": "check a file of stories' views",
    "demo": "the whole way on invented stories, in a few minutes",
    "storyworld": "write invented stories whose truth is known",
    "generate": "negatives of training rows, or views of stories, by a language model",
    "mine": "add near but wrong stories to training rows as negatives",
    "pseudonymise": "placeholders for the names in stories, and back",
    "augment": "more training rows: stories translated into other languages and back",
    "store": "what the stores of frozen vectors hold: list, verify or prune them",
}
"""Every command lives in commands/NAME.py as a function NAME."""


def help_text() -> str:
    """The top-level help."""
    width = max(map(len, {**TRAINING, **OTHERS}))
    rows = [f"  {name:<{width}}  {line}" for name, line in {**TRAINING, **OTHERS}.items()]
    return "\n".join(
        [
            "usage: narrlit COMMAND [OPTIONS]",
            "",
            "Embeddings of stories: near when theme, course of action and outcome agree.",
            "",
            "commands:",
            *rows,
            "",
            "narrlit COMMAND --help tells a command's options; --version the version.",
        ]
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 0 done, 2 a mistake that the user can mend, 130 interrupted."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    name = given[0] if given else "--help"
    told = {"--help": help_text(), "-h": help_text(), "--version": f"narrlit {__version__}"}
    if name in told:
        print(told[name])
        return 0
    if name not in TRAINING and name not in OTHERS:
        return _complain(f"no command {name!r}; there are {', '.join([*TRAINING, *OTHERS])}")
    try:
        return _run(name, given[1:])
    except NarrlitError as error:
        return _complain(str(error))
    except KeyboardInterrupt:
        print("narrlit: interrupted", file=sys.stderr)
        return 130
    except ValueError as error:
        from narrlit.commands.refusals import mistake_behind

        mistake = mistake_behind(error)
        if mistake is None:
            raise
        return _complain(str(mistake))


def _run(name: str, arguments: list[str]) -> int:
    if name in TRAINING:
        from narrlit.commands.train import train

        return train(name, arguments)
    from narrlit.commands.options import call

    return call(getattr(import_module(f"narrlit.commands.{name}"), name), name, arguments)


def _complain(message: str) -> int:
    print(f"narrlit: error: {' '.join(message.split())}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
