"""narrlit fit, validate, test and predict: Lightning's command line over narrlit's objectives and data."""

from argparse import ArgumentParser
from collections.abc import Sequence

import narrlit
from narrlit.command_line import options_as, setting_flag
from narrlit.commands.fit_words import read_fit_words
from narrlit.errors import OptionError

SHORT_HELP = """usage: narrlit {name} --config FILE [--config OVERLAY ...] [OPTIONS]

Configs are layered: a later --config overrides earlier ones, and options override all configs. Common options:

  --model.encoder.model M              minilm, a folder or a hub id
  --data.train FILE                    training data (data: FileData); also --data.validation, --data.test
  --data.loading.batch_size N          training examples per batch
  --model.optimization.learning_rate R
  --trainer.max_epochs N
  --seed_everything N
  --seeds 1,2,3                        one run per seed (fit only), with mean, standard deviation and paired test
  --ckpt_path FILE                     checkpoint to resume from (fit) or to evaluate; options override its settings
  --trust-remote-code                  run Python files that come with a model; only for models from authors you trust
  --print_config                       print the whole configuration that would run

narrlit {name} --help all              every option
"""


def train(name: str, arguments: Sequence[str]) -> int:
    """Run one of Lightning's stages (fit, validate, test or predict), or one fit per seed; return the exit code."""
    words = list(arguments)
    if words in ([], ["-h"], ["--help"]):
        print(SHORT_HELP.format(name=name), end="")
        return 0
    if words == ["--help", "all"]:
        words = ["--help"]
    with options_as(setting_flag):
        seeds, stage_words = _split_seeds(words) if name == "fit" else (None, words)
        if seeds is None or "--print_config" in stage_words:
            from narrlit.lightning_cli import run_stage

            return run_stage(name, stage_words)

        result = narrlit.fit_seeds(read_fit_words(*stage_words), seeds=seeds)
        print(f"{result}\nruns: {result.folder}")
        return 0


def _split_seeds(words: list[str]) -> tuple[list[int] | None, list[str]]:
    """Split the arguments of a fit into its seeds, None if there are none, and the remaining arguments."""
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--seeds", nargs="?", const="")
    options, others = parser.parse_known_args(words)
    return None if options.seeds is None else _read_seeds(options.seeds), others


def _read_seeds(text: str) -> list[int]:
    """Parse comma-separated seeds."""
    try:
        return [int(word) for word in text.split(",")]
    except ValueError as error:
        raise OptionError("invalid_list", option="seeds", found=text) from error
