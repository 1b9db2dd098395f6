"""Labelled triples for commands that judge."""

from dataclasses import dataclass

from narrlit.data.readers import read_triples
from narrlit.data.reading import Reading
from narrlit.data.records import Triple
from narrlit.errors import OptionError


@dataclass(frozen=True)
class LabelOptions:
    """How labelled triples are read.

    Attributes:
        labels: file of text_a_is_closer, where labels stand apart from stories.
        strict: refuse the first row that can't be used, instead of dropping and counting it.
    """

    labels: str | None = None
    strict: bool = False

    def read(self, triples: str) -> Reading[Triple]:
        """The triples of a file, each with its label.

        Raises:
            DataError: if a file can't be read.
            OptionError: if a triple has no label.
        """
        reading = read_triples(triples, labels=self.labels, strict=self.strict)
        unlabelled = sum(triple.a_is_closer is None for triple in reading.records)
        if unlabelled:
            rows = f"{unlabelled} {'row' if unlabelled == 1 else 'rows'} without a label"
            if self.labels is None:
                raise OptionError(f"{triples} has {rows}: give --labels FILE")
            raise OptionError(f"{self.labels} has {rows}: write true or false in each")
        return reading
