"""Pivot languages of back-translation, with their translation models."""

from dataclasses import dataclass
from typing import NamedTuple

from narrlit.errors import OptionError

# FLORES-200 codes of NLLB: https://github.com/facebookresearch/flores/blob/main/flores200/README.md
_CODES = (
    "ar:arb_Arab bg:bul_Cyrl bn:ben_Beng ca:cat_Latn cs:ces_Latn da:dan_Latn de:deu_Latn el:ell_Grek en:eng_Latn "
    "es:spa_Latn et:est_Latn fa:pes_Arab fi:fin_Latn fr:fra_Latn he:heb_Hebr hi:hin_Deva hr:hrv_Latn hu:hun_Latn "
    "id:ind_Latn it:ita_Latn ja:jpn_Jpan ko:kor_Hang nl:nld_Latn pl:pol_Latn pt:por_Latn ro:ron_Latn ru:rus_Cyrl "
    "sk:slk_Latn sv:swe_Latn tr:tur_Latn uk:ukr_Cyrl vi:vie_Latn zh:zho_Hans"
)

FLORES: dict[str, str] = dict(pair.split(":") for pair in _CODES.split())
"""FLORES-200 codes of languages by their ISO 639-1 codes."""


@dataclass(frozen=True)
class Pivots:
    """Pivot languages, translation models and settings of beam search.

    Attributes:
        pivots: comma-separated ISO 639-1 codes of pivot languages; with `nllb`, FLORES-200 codes are also accepted.
        there: folder or hub id of the Marian model from English; {pivot} is replaced by the code of each language.
        back: folder or hub id of the Marian model to English; {pivot} is replaced likewise.
        nllb: folder or hub id of an NLLB model, which replaces both Marian models.
        beams: number of beams; 1 is greedy search.
        batch_tokens: maximum number of tokens in a batch of sentences, including padding.
    """

    pivots: str = "fr,ru,hi"
    there: str = "Helsinki-NLP/opus-mt-en-{pivot}"
    back: str = "Helsinki-NLP/opus-mt-{pivot}-en"
    nllb: str | None = None
    beams: int = 4
    batch_tokens: int = 2048

    def __post_init__(self) -> None:
        if self.beams < 1 or self.batch_tokens < 1:
            raise OptionError("beams_and_batch_tokens", beams=self.beams, batch_tokens=self.batch_tokens)
        names = self.names
        if len(set(names)) < len(names) or {"en", "eng_Latn", ""} & set(names):
            raise OptionError("invalid_pivots", pivots=self.pivots)
        if self.nllb is not None:
            self._check_nllb()
        elif len(names) > 1 and not ("{pivot}" in self.there and "{pivot}" in self.back):
            raise OptionError("no_place_for_pivot")

    def _check_nllb(self) -> None:
        if (self.there, self.back) != (Pivots.there, Pivots.back):
            raise OptionError("nllb_directions")
        unknown = [name for name in self.names if "_" not in name and name not in FLORES]
        if unknown:
            raise OptionError("unknown_pivot", pivot=unknown[0])

    @property
    def names(self) -> list[str]:
        """Codes of the pivot languages, in order."""
        return [name.strip() for name in self.pivots.split(",")]

    def routes(self, pivot: str) -> tuple["Route", "Route"]:
        """Return the routes from English to a pivot language and back."""
        if self.nllb is None:
            return Route(self.there.replace("{pivot}", pivot)), Route(self.back.replace("{pivot}", pivot))
        code = FLORES.get(pivot, pivot)
        return Route(self.nllb, "eng_Latn", code), Route(self.nllb, code, "eng_Latn")


class Route(NamedTuple):
    """Model for one direction and, for NLLB, the codes of both languages."""

    model: str
    source: str | None = None
    target: str | None = None
