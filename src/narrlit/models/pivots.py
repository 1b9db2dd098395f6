"""Which languages stories are translated into and back from, and by which models; no torch, for a command's options."""

import re
from dataclasses import dataclass

from narrlit.errors import OptionError

ENGLISH = "en"
_PIVOT = re.compile(r"[A-Za-z][\w-]*")

# FLORES-200's codes, which NLLB knows, of languages by their ISO 639-1 names:
# https://github.com/facebookresearch/flores/blob/main/flores200/README.md
FLORES = {
    "ar": "arb_Arab",
    "bg": "bul_Cyrl",
    "bn": "ben_Beng",
    "ca": "cat_Latn",
    "cs": "ces_Latn",
    "da": "dan_Latn",
    "de": "deu_Latn",
    "el": "ell_Grek",
    "en": "eng_Latn",
    "es": "spa_Latn",
    "et": "est_Latn",
    "fa": "pes_Arab",
    "fi": "fin_Latn",
    "fr": "fra_Latn",
    "he": "heb_Hebr",
    "hi": "hin_Deva",
    "hr": "hrv_Latn",
    "hu": "hun_Latn",
    "id": "ind_Latn",
    "it": "ita_Latn",
    "ja": "jpn_Jpan",
    "ko": "kor_Hang",
    "nl": "nld_Latn",
    "pl": "pol_Latn",
    "pt": "por_Latn",
    "ro": "ron_Latn",
    "ru": "rus_Cyrl",
    "sk": "slk_Latn",
    "sv": "swe_Latn",
    "tr": "tur_Latn",
    "uk": "ukr_Cyrl",
    "vi": "vie_Latn",
    "zh": "zho_Hans",
}


@dataclass(frozen=True)
class Route:
    """One direction: a model's name, and NLLB's codes of both languages, which a model of one pair has no need of."""

    model: str
    source: str | None = None
    target: str | None = None


@dataclass(frozen=True)
class Pivots:
    """The languages to go through, the models that translate, and how they search.

    Attributes:
        pivots: languages to translate into and back from, as ISO 639-1 names them, with commas between; of Marian,
            whatever the models' names have in the place of {pivot}; of NLLB also its own codes, such as fra_Latn.
        there: Marian model from English, a folder or a hub's id; {pivot} in it becomes each language.
        back: Marian model into English, named alike.
        nllb: NLLB model for all directions, a folder or a hub's id; takes the place of the Marian models.
        beams: of the beam search; 1 is greedy. Nothing is drawn at random.
        batch_tokens: tokens of a batch of sentences, padding counted in; memory grows with it and with the beams.

    Raises:
        OptionError: naming the option that has no use as given.
    """

    pivots: str = "fr,ru,hi"
    there: str = "Helsinki-NLP/opus-mt-en-{pivot}"
    back: str = "Helsinki-NLP/opus-mt-{pivot}-en"
    nllb: str | None = None
    beams: int = 4
    batch_tokens: int = 2048

    def __post_init__(self) -> None:
        _check_names(self.pivots, self.names)
        for option, value in (("--beams", self.beams), ("--batch-tokens", self.batch_tokens)):
            if value < 1:
                raise OptionError(f"{option} {value}: at least 1 is needed")
        if self.nllb is not None:
            for option, given, usual in (("--there", self.there, Pivots.there), ("--back", self.back, Pivots.back)):
                if given != usual:
                    raise OptionError(
                        f"{option} has no use beside --nllb, which translates both ways: give one of them"
                    )
            for name in self.names:
                _code(name)
        elif len(self.names) > 1:
            for option, template in (("--there", self.there), ("--back", self.back)):
                if "{pivot}" not in template:
                    raise OptionError(f"{option} {template}: with several pivots its name needs {{pivot}} in it")

    @property
    def names(self) -> list[str]:
        """The languages, in the order given."""
        return [name.strip() for name in self.pivots.split(",")]

    def routes(self, pivot: str) -> tuple[Route, Route]:
        """The way there and the way back.

        >>> Pivots().routes("fr")[0]
        Route(model='Helsinki-NLP/opus-mt-en-fr', source=None, target=None)
        >>> Pivots(nllb="facebook/nllb-200-distilled-600M").routes("hi")[1]
        Route(model='facebook/nllb-200-distilled-600M', source='hin_Deva', target='eng_Latn')
        """
        if self.nllb is None:
            return Route(self.there.replace("{pivot}", pivot)), Route(self.back.replace("{pivot}", pivot))
        english, other = FLORES[ENGLISH], _code(pivot)
        return Route(self.nllb, english, other), Route(self.nllb, other, english)


def _check_names(given: str, names: list[str]) -> None:
    for name in names:
        if not _PIVOT.fullmatch(name):
            raise OptionError(f"--pivots {given}: {name!r} names no language; write them with commas, as in fr,ru,hi")
        if name == ENGLISH or name == FLORES[ENGLISH]:
            raise OptionError(f"--pivots {given}: the stories are English already; leave {name} out")
    if len(set(names)) < len(names):
        raise OptionError(f"--pivots {given}: a language stands there twice; name each once")


def _code(name: str) -> str:
    """NLLB's code of a language; whether a model knows a code that is given as such, it says itself."""
    if "_" in name:
        return name
    if name not in FLORES:
        raise OptionError(
            f"--pivots {name}: its code in NLLB is not known here; name one of {', '.join(FLORES)}, or give the code "
            "itself, such as fra_Latn"
        )
    return FLORES[name]
