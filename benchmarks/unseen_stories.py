"""Write the stories of Twice Told whose plots and worlds never train: `python benchmarks/unseen_stories.py FILE`."""

import sys
from dataclasses import asdict

import pandas as pd

import narrlit


def main() -> None:
    """Write the tellings of validation and test plots in validation and test worlds."""
    corpus = narrlit.TwiceTold.read()
    parts = [corpus.split("validation"), corpus.split("test")]
    plots = {plot.plot for part in parts for plot in part.plots}
    worlds = {world for part in parts for world in part.worlds}
    tellings = [telling for telling in corpus.tellings if telling.plot in plots and telling.world in worlds]
    pd.DataFrame([{"id": telling.id, **asdict(telling)} for telling in tellings]).to_csv(sys.argv[1], index=False)


if __name__ == "__main__":
    main()
