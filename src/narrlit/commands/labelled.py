"""Labelled triples for commands that judge."""

from narrlit.data.readers import read_triples
from narrlit.data.reading import Reading
from narrlit.data.records import Triple
from narrlit.errors import OptionError


def read_labelled(triples: str, labels: str | None, strict: bool) -> Reading[Triple]:
    """Read triples, each with its label.

    Args:
        triples: the file.
        labels: file of the labels, where they stand apart.
        strict: refuse the first row that can't be used.

    Raises:
        DataError: if a file can't be read.
        OptionError: if a triple has no label.
    """
    reading = read_triples(triples, labels=labels, strict=strict)
    unlabelled = sum(triple.a_is_closer is None for triple in reading.records)
    if unlabelled:
        rows = f"{unlabelled} {'row' if unlabelled == 1 else 'rows'} without a label"
        if labels is None:
            raise OptionError(f"{triples} has {rows}: give --labels FILE")
        raise OptionError(f"{labels} has {rows}: write true or false in each")
    return reading
