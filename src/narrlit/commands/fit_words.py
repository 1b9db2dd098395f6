"""Options of `narrlit fit` among those of other commands."""

from narrlit.errors import OptionError
from narrlit.models.config import allow_remote_code


def read_fit_words(*fit: str) -> list[str | dict[str, str]]:
    """Split options of `narrlit fit` into configs and settings, in the order in which later ones override earlier ones.

    `--trust-remote-code` takes effect at once: a config can't give this consent.

    Args:
        *fit: options of `narrlit fit`, such as --config; later ones override earlier ones.

    Raises:
        OptionError: if a word is not an option, or an option has no value.

    >>> read_fit_words("--config", "hits.yaml", "--data.train=a.jsonl")
    ['hits.yaml', {'data.train': 'a.jsonl'}]
    """
    configs: list[str | dict[str, str]] = []
    remaining = iter(fit)
    for word in remaining:
        if word == "--trust-remote-code":
            allow_remote_code()
            continue
        option, equals, value = word.partition("=")
        if not option.startswith("-"):
            raise OptionError("invalid_settings", problem=f"unrecognized arguments: {word}", stage="fit")
        if not equals:
            value = next(remaining, "--")
            if value.startswith("--"):
                raise OptionError("invalid_settings", problem=f"argument {option}: expected one argument", stage="fit")
        configs.append(value if option in ("--config", "-c") else {option.lstrip("-"): value})
    return configs
