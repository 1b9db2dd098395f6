"""narrlit ablate: a system and its ablations, one fit each, in one table."""

from typing import Annotated

import narrlit
from narrlit.commands.options import listed
from narrlit.commands.seeds import read_seeds
from narrlit.files import Output


def ablate(
    *fit: str,
    out: Annotated[str, Output(continued=True, parameter="folder")],
    ablations: str | None = None,
    seeds: str | None = None,
) -> None:
    """Fit and evaluate a system and its ablations; all other options, --config first, are those of `narrlit fit`.

    The first row, full, is the config as given; each further one adds an overlay, which wins over all configs and
    options before it. Repeat the command to resume: finished rows are kept.

    Args:
        *fit: options of `narrlit fit`.
        out: folder for the rows' configs and runs (full.yaml, full, ...) and the report, ablations.json, .md, .csv
            and .tex.
        ablations: overlay files or patterns separated by commas, here or among the packaged configs; default:
            configs/ablations/SYSTEM_*.yaml, where SYSTEM is the first config's name.
        seeds: seeds with commas between; every row is fitted with each, as full_seed_1, and the report has mean,
            standard deviation and tests over the seeds.
    """
    patterns = None if ablations is None else listed(ablations)
    result = narrlit.ablate([], fit, folder=out, ablations=patterns, seeds=read_seeds(seeds))
    result.write()
    print(result)
