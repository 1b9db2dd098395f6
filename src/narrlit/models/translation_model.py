"""Translation models of Marian's and NLLB's kind behind one interface: texts to tokens, a batch to its translations.

Marian: Junczys-Dowmunt et al. 2018, OPUS-MT: Tiedemann and Thottingal 2020; NLLB: Costa-jussà et al. 2022.
"""

import json
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from narrlit.errors import ModelError
from narrlit.models.loading import quiet
from narrlit.models.translation_log import Translation
from narrlit.optional import require

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

LONGEST = 512
"""Tokens that a model reads or writes at a time, fewer where it has fewer positions. NLLB could take more, but has been
trained on sentences."""

TIMES, MORE = 3, 20
"""A translation is stopped at so many times its source's tokens and so many more: what gets as long repeats itself, and
would hold its whole batch up."""

_MARIAN = "marian"
_NLLB = ("m2m_100", "nllb-moe")


class TranslationModel:
    """A translation model with its tokenizer, on its device."""

    def __init__(self, name: str, device: torch.device) -> None:
        """Load it.

        Args:
            name: a folder or a hub's id.
            device: where it shall work.

        Raises:
            ModelError: if there is no such model, or it is none of Marian's or NLLB's kind.
            MissingExtraError: if the packages of Marian's tokenizer are absent.
        """
        self.name = name
        self.model, self.tokenizer = _load(name)
        self.model.eval().to(device)
        self.marian = self.model.config.model_type == _MARIAN
        if self.marian and len(self.tokenizer.supported_language_codes) > 1:
            raise ModelError(
                f"model {name}: it translates into several languages; name one of a single pair, or --nllb"
            )
        positions = (LONGEST, self.model.config.max_position_embeddings, self.tokenizer.model_max_length)
        self.longest = int(min(positions))
        self.digest = _digest(self.model, self.tokenizer)

    def token_ids(self, text: str) -> list[int]:
        """Token ids of a text, special tokens included, of whatever length."""
        # OPUS-MT was trained on texts with plain quotes and dashes; its tokenizer leaves making them so to its caller.
        text = self.tokenizer.normalize(text) if self.marian else text
        ids: list[int] = self.tokenizer(text, verbose=False)["input_ids"]
        return ids

    def language(self, code: str) -> int:
        """The token that stands for a language.

        Raises:
            ModelError: if the model doesn't know it.
        """
        token: int = self.tokenizer.convert_tokens_to_ids(code)
        if token == self.tokenizer.unk_token_id:
            raise ModelError(f"model {self.name}: it knows no language {code}; name an NLLB model, or another pivot")
        return token

    @torch.inference_mode()
    def generate(self, ids: list[list[int]], beams: int, target: int | None) -> list[Translation]:
        """Translate one batch.

        Args:
            ids: token ids of each text.
            beams: of the search.
            target: the token of the language to write; None: the model knows one alone.
        """
        batch = self.tokenizer.pad({"input_ids": ids}, return_tensors="pt").to(self.model.device)
        limits = [min(self.longest - 1, TIMES * len(text) + MORE) for text in ids]
        forced = {} if target is None else {"forced_bos_token_id": target}
        options = {"num_beams": beams, "do_sample": False, "max_length": self.longest, **forced}
        stop = _length_limits(torch.tensor(limits, device=self.model.device))
        found = self.model.generate(**batch, **options, stopping_criteria=stop).tolist()
        texts = self.tokenizer.batch_decode(found, skip_special_tokens=True)
        end = self.tokenizer.eos_token_id
        # The first token is the decoder's start, which NLLB writes as the end, too.
        ended = [end in row[1:limit] for row, limit in zip(found, limits, strict=True)]
        return [Translation(text.strip(), whole) for text, whole in zip(texts, ended, strict=True)]


def _length_limits(limits: Tensor) -> Any:
    """Stops each text at its own number of new tokens, so that what stands beside it in a batch changes nothing."""
    from transformers import StoppingCriteria, StoppingCriteriaList

    class LengthLimits(StoppingCriteria):
        def __call__(self, input_ids: Tensor, scores: Tensor, **_: Any) -> Tensor:
            beams = len(input_ids) // len(limits)
            return (limits < input_ids.shape[1]).repeat_interleave(beams)

    return StoppingCriteriaList([LengthLimits()])


def _load(name: str) -> tuple["PreTrainedModel", "PreTrainedTokenizerBase"]:
    local = Path(name).is_dir()
    with quiet():
        from transformers import AutoConfig, AutoModelForSeq2SeqLM, AutoTokenizer

        try:
            kind = AutoConfig.from_pretrained(name, local_files_only=local).model_type
            if kind == _MARIAN:
                require("sentencepiece", "translate")
                require("sacremoses", "translate")
            elif kind not in _NLLB:
                raise ModelError(f"model {name}: it is a {kind}; a Marian or an NLLB model is needed")
            tokenizer = AutoTokenizer.from_pretrained(name, local_files_only=local)
            # The width that results are compared in: half precision changes what a beam search finds.
            model = AutoModelForSeq2SeqLM.from_pretrained(name, dtype=torch.float32, local_files_only=local)
        except (OSError, ValueError, RuntimeError) as error:
            reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
            place = "the folder can't be loaded" if local else "there is no such folder, and the hub did not give it"
            raise ModelError(f"model {name}: {place} ({reason})") from error
    return model, tokenizer


def _digest(model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase") -> str:
    """SHA-256 of what a model's translations rest on: a name may stand for another model tomorrow."""
    whole = sha256()
    for settings in (model.config.to_dict(), model.generation_config.to_dict(), tokenizer.get_vocab()):
        plain = {
            name: value for name, value in settings.items() if name not in ("_name_or_path", "transformers_version")
        }
        whole.update(json.dumps(plain, sort_keys=True, default=str).encode())
    for name, tensor in chain(model.named_parameters(), model.named_buffers()):
        whole.update(f"{name} {tuple(tensor.shape)}".encode())
        whole.update(tensor.detach().cpu().contiguous().numpy())
    return whole.hexdigest()
