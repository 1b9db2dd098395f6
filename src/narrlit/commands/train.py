"""narrlit fit, validate, test and predict: Lightning's command line over narrlit's objectives and data."""

from collections.abc import Sequence

SHORT_HELP = """usage: narrlit {name} --config FILE [--config OVERLAY ...] [OPTIONS]

Configs are layered: a later --config overrides what it names, options override what they name. Common options:

  --model.encoder.model M              minilm, a folder or a hub id
  --data.train FILE                    training data (data: FileData); also --data.validation, --data.test
  --data.loading.batch_size N          training examples of a batch
  --model.optimization.learning_rate R
  --trainer.max_epochs N
  --seed_everything N
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
    from narrlit.lightning_cli import run_stage

    return run_stage(name, ["--help"] if list(arguments) == ["--help", "all"] else arguments)
