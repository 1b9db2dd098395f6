"""narrlit ablate: a system and its ablations, one fit each, in one table."""

from pathlib import Path
from typing import Annotated

from narrlit.files import Output


def ablate(
    *fit: str, out: Annotated[str, Output(continued=True)], ablations: str | None = None, seeds: str | None = None
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
    from narrlit.experiments.ablation import ablate_system
    from narrlit.experiments.seed_fits import ablate_seeds, read_seeds

    folder = Path(out)
    report = ablate_seeds(fit, folder, ablations, read_seeds(seeds)) if seeds else ablate_system(fit, folder, ablations)
    report.write(folder, "ablations")
    print(report.markdown(), end="")
