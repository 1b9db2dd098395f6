"""narrlit ablate: fit a system and its ablations, and compare them in one table."""

from typing import Annotated

import narrlit
from narrlit.commands.fit_words import read_fit_words
from narrlit.commands.options import listed
from narrlit.commands.seeds import read_seeds
from narrlit.files import Output


def ablate(
    *fit: str,
    out: Annotated[str, Output(continued=True, parameter="folder")],
    ablations: str | None = None,
    seeds: str | None = None,
) -> None:
    """Fit and evaluate a system and its ablations; options such as --config are passed to `narrlit fit`.

    The first row, full, is the unchanged config. Each further row adds an overlay config, which overrides all configs
    and options before it. Repeat the command to resume: finished rows are kept.

    Args:
        *fit: options of `narrlit fit`.
        out: folder for the configs and runs of the rows (full.yaml, full, ...) and the result (ablations.json, .md,
            .csv and .tex).
        ablations: comma-separated overlay configs or glob patterns, looked up on disk and among the packaged configs;
            default: configs/ablations/SYSTEM_*.yaml, where SYSTEM is the name of the first config.
        seeds: comma-separated seeds; every row is fitted once per seed (full_seed_1, ...), and the result has mean,
            standard deviation and tests over the seeds.
    """
    patterns = None if ablations is None else listed(ablations)
    result = narrlit.ablate(read_fit_words(fit), folder=out, ablations=patterns, seeds=read_seeds(seeds))
    result.write()
    print(result)
