"""narrlit ablate: a system and its ablations, one fit each, in one table."""

from pathlib import Path


def ablate(*fit: str, out: str, ablations: str | None = None) -> None:
    """Fit and evaluate a system and its ablations; all other options, --config first, are those of `narrlit fit`.

    The first row, full, is the config as given; each further one adds an overlay, which wins over all configs and
    options before it. Repeat the command to resume: finished rows are kept.

    Args:
        *fit: options of `narrlit fit`.
        out: folder for the rows' configs and runs (full.yaml, full, ...) and the report, ablations.json, .md, .csv
            and .tex.
        ablations: overlay files or patterns separated by commas, here or among the packaged configs; default:
            configs/ablations/SYSTEM_*.yaml, where SYSTEM is the first config's name.
    """
    from narrlit.experiments.ablation import ablate_system

    report = ablate_system(fit, Path(out), ablations)
    report.write(Path(out), "ablations")
    print(report.markdown(), end="")
