"""`narrlit.fit_seeds`: fit a config with several seeds."""

from collections.abc import Sequence
from pathlib import Path

from narrlit import lightning_cli
from narrlit.configuration import Configs, FitSettings, read_configs
from narrlit.errors import OptionError
from narrlit.experiments.ablation import read_systems
from narrlit.experiments.fit_figures import fit_answers, fits_result, reference_differences
from narrlit.experiments.fitting import quiet_fit
from narrlit.experiments.plan import FitsResult, Plan, check_seeds

PURPOSE = "a fit with several seeds"
PLACE = "trainer.logger.init_args.version"


def fit_seeds(config: Configs, settings: FitSettings | None = None, *, seeds: Sequence[int]) -> FitsResult:
    """Fit a config with each seed, and compare it with the encoder before training; finished fits (seed_N) are kept.

    The runs are in the folder of the config's logger, below its version or, without a version, below `seeds`.

    Args:
        config: a config, or several, as in `narrlit.fit`.
        settings: settings that override the config, as in `narrlit.fit`.
        seeds: two or more seeds.

    Returns:
        A `Result` with mean and standard deviation over the seeds, the accuracies of each seed, and differences to the
        encoder before training; also `.runs` and `.folder`.

    Raises:
        DataError: if a file can't be read.
        OptionError: if a setting is invalid, or the folder contains other fits.
        NarrlitError: if a fit fails; finished fits are kept.

    >>> getfixture("monkeypatch").chdir(getfixture("tmp_path"))
    >>> settings = {"data": "StoryWorldData", "data.train": 4, "data.validation": 4, "trainer.max_epochs": 1}
    >>> result = fit_seeds("configs/mendel292_linear.yaml", settings, seeds=[1, 2])
    >>> list(result.runs), result.estimate(metric="accuracy_reference", seed=1).n
    (['seed_1', 'seed_2'], 4)
    """
    layers = read_configs(config, settings)
    checked = check_seeds(seeds)
    (system,) = read_systems(layers, purpose=PURPOSE)
    planned = [system.fit(f"seed_{seed}", seed, "trained") for seed in checked]
    folder = _folder_of(layers)
    fits = Plan(folder, planned, {fit.name: fit.config for fit in planned}, PLACE).run()
    answers = fit_answers(fits)
    result = fits_result("seeds", folder, fits, answers, reference_differences(answers))
    result.write()
    return result


def _folder_of(layers: Sequence[FitSettings]) -> Path:
    """Return the folder of the runs, from the config's logger."""
    with quiet_fit():
        logger = lightning_cli.parse_fit(layers).config.trainer.logger
    place = dict(getattr(logger, "init_args", {}))
    if "save_dir" not in place:
        raise OptionError("seeds_need_folder")
    version = place.get("version") or "seeds"
    return Path(place["save_dir"]) / (place.get("name") or "") / str(version)
