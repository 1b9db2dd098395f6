"""narrlit fit, validate, test and predict: Lightning's command line over narrlit's objectives and data."""

from argparse import ArgumentParser
from collections.abc import Sequence

SHORT_HELP = """usage: narrlit {name} --config FILE [--config OVERLAY ...] [OPTIONS]

Configs are layered: a later --config overrides what it names, options override what they name. Common options:

  --model.encoder.model M              minilm, a folder or a hub id
  --data.train FILE                    training data (data: FileData); also --data.validation, --data.test
  --data.loading.batch_size N          training examples of a batch
  --model.optimization.learning_rate R
  --trainer.max_epochs N
  --seed_everything N
  --seeds 1,2,3                        a run for each (fit alone), and their mean, standard deviation and paired test
  --ckpt_path FILE                     resume from a checkpoint (fit) or use it; the command line overrides its settings
  --trust-remote-code                  run Python files that come with a model: trusted ones only
  --print_config                       print the whole configuration that would run

narrlit {name} --help all              every option
"""


def train(name: str, arguments: Sequence[str]) -> int:
    """Run one of Lightning's stages (fit, validate, test or predict), and return the exit code."""
    if list(arguments) in (["--help"], ["-h"], []):
        print(SHORT_HELP.format(name=name), end="")
        return 0
    from narrlit.arguments import translated_errors, with_setting_flags

    with translated_errors(with_setting_flags):
        return _train(name, arguments)


def _train(name: str, arguments: Sequence[str]) -> int:
    """Run a stage, or a fit for each seed."""
    from narrlit.lightning_cli import run_stage

    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--seeds", nargs="?", const="")
    seeds, fit = parser.parse_known_args(arguments)
    if name == "fit" and seeds.seeds is not None and "--print_config" not in fit:
        from narrlit.commands.seeds import read_seeds
        from narrlit.experiments.seed_fits import fit_seeds

        result = fit_seeds([], fit, seeds=read_seeds(seeds.seeds) or [])
        result.write()
        print(f"{result}\nruns: {result.folder}")
        return 0
    arguments = fit if name == "fit" else arguments
    return run_stage(name, ["--help"] if list(arguments) == ["--help", "all"] else arguments)
