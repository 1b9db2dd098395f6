"""Models by name: a folder, a run directory, a checkpoint, a promoted teacher, a hub id, `narrlit-mini` or `minilm`."""

import pickle
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from narrlit.errors import ModelError, reading
from narrlit.models.config import EncoderConfig, Fusion, Long, Precision
from narrlit.models.pretrained import NARRLIT_MINI, packaged_adapter
from narrlit.models.run_file import RECORD, PseudonymRecord, RunFile

if TYPE_CHECKING:
    from narrlit.models.encoder import Encoder
    from narrlit.models.heads import InnerModel

MULTILINGUAL = 60_000
"""Tokens of a vocabulary from which a model is taken to read several languages; BERT's English one has 30,522."""
VERSION = re.compile(r"version_\d+")


def load_encoder(
    source: str,
    *,
    trust_remote_code: bool = False,
    max_length: int | None = None,
    long: Long = "windows",
    precision: Precision | None = None,
) -> "Encoder":
    """Load the encoder that `source` names, ready to embed: adapters merged, unless their model is quantized.

    Args:
        source: a sentence-transformers folder, a run directory (its best checkpoint, else its last; of `runs/NAME` the
            newest version), a checkpoint, the folder of a promoted teacher, a model hub's id, or `minilm`, which needs
            no network.
        trust_remote_code: run Python files that come with the model.
        max_length: tokens of a story (of a sentence, where the model reads sentences) that are read; None: as trained,
            or as the model's files say.
        long: longer texts are read in windows, truncated, or refused.
        precision: number format to compute in, `bf16`, `fp32` or `auto`; None: the model's own.

    Raises:
        ModelError: if there is no such model or it can't be loaded.
        OptionError: for `bf16` on a processor without it.
    """
    encoder = open_encoder(source, trust_remote_code=trust_remote_code, max_length=max_length)
    if not encoder.quantized:
        encoder.merge()
    encoder.long = long
    return encoder.eval().cast(precision)


def open_encoder(source: str, *, trust_remote_code: bool = False, max_length: int | None = None) -> "Encoder":
    """Load the encoder that `source` names as it was trained: adapters are not merged.

    Args:
        source: as for `load_encoder`.
        trust_remote_code: run Python files that come with the model.
        max_length: tokens of a story that are read; None: as trained, or as the model's files say.

    Raises:
        ModelError: if there is no such model or it can't be loaded.
    """
    from narrlit.models.weights import CONFIG, load_saved

    checkpoint = find_checkpoint(source)
    if checkpoint is not None:
        return _from_checkpoint(checkpoint, trust_remote_code, max_length)
    folder = packaged_adapter() if source == NARRLIT_MINI else Path(source)
    if (folder / CONFIG).is_file():
        return load_saved(folder, trust_remote_code=trust_remote_code, max_length=max_length)
    return _from_model(source, trust_remote_code, max_length)


def _from_model(source: str, trust_remote_code: bool, max_length: int | None) -> "Encoder":
    """Load a sentence-transformers model, from a folder or a hub, with the head that an exported folder may hold."""
    from sentence_transformers.models import Dense

    from narrlit.models.encoder import Encoder

    folder = Path(source)
    head = _exported_head(folder)
    model = source if head is None else str(folder / "inner")
    # The folder's own files say whether embeddings are normalized, as elsewhere.
    config = EncoderConfig(model, normalize=None, max_length=max_length)
    encoder = Encoder(config, trust_remote_code=trust_remote_code)
    if head is not None:
        encoder.attach(head)
        for dense in folder.glob("*_Dense"):  # post-processing
            encoder.postprocess(Dense.load(str(dense)))
    return encoder


def with_fusion(encoder: "Encoder", fusion: Fusion | None) -> "Encoder":
    """Set the weights of an encoder's views, also if it had none, and keep trained heads. None: no change."""
    from narrlit.models.heads import ViewFusion

    if fusion is None:
        return encoder
    if encoder.post is not None:
        raise ModelError("other weights of views need another post-processing: export the model again with `fusion`")
    if encoder.views is None:
        encoder.attach(ViewFusion(encoder.dimension, asdict(fusion)).eval())
    else:
        encoder.views.fusion = asdict(fusion)
    return encoder


def _exported_head(folder: Path) -> "InnerModel | None":
    """Load the head of an exported folder by this package's code, not the folder's; None if it has no head."""
    if not (folder / "heads.py").is_file():
        return None
    from narrlit.models.heads import SentenceBiLSTM, ViewFusion

    with reading("model", folder, "export it again", ModelError):
        kind = SentenceBiLSTM if (folder / SentenceBiLSTM.config_file_name).is_file() else ViewFusion
        return kind.load_head(folder)


def find_checkpoint(source: str) -> Path | None:
    """Find the checkpoint that `source` is or, if it is a run directory, recommends; None where it is neither."""
    path = Path(source)
    if path.suffix == ".ckpt":
        if not path.exists():
            raise ModelError(f"checkpoint {source}: no such file")
        return path
    run = _run_directory(path)
    return _run_checkpoint(run) if (run / RECORD).is_file() else None


def _run_checkpoint(run: Path) -> Path:
    """Find the checkpoint that a run's record recommends: the best, else the last; raise ModelError without any."""
    recommended = RunFile.read(run / RECORD).checkpoints
    name = recommended.get("best", recommended.get("last"))
    best = None if name is None else run / name
    if best is not None and best.exists():
        return best
    newest_first = sorted((run / "checkpoints").glob("*.ckpt"), key=lambda file: file.stat().st_mtime, reverse=True)
    if not newest_first:
        raise ModelError(f"run {run}: it has no checkpoint yet; continue training, or name another model")
    if best is None:  # killed between its first checkpoint and the next record
        return newest_first[0]
    others = " or ".join(str(file) for file in newest_first[:3])
    raise ModelError(f"run {run}: its best checkpoint, {best}, is gone; restore it, or name another one: {others}")


def _run_directory(path: Path) -> Path:
    """Return a run's directory, for a folder of versions the newest one with a record; else the path as it is."""
    if (path / RECORD).is_file() or not path.is_dir() or (path / "modules.json").exists():
        return path
    versions = [child for child in path.iterdir() if VERSION.fullmatch(child.name)]
    recorded = [version for version in versions if (version / RECORD).is_file()]
    if recorded:
        return max(recorded, key=lambda version: int(version.name.removeprefix("version_")))
    if versions:
        raise ModelError(f"run {path}: none of its {len(versions)} versions has a {RECORD}; train it again")
    runs = sorted(child.name for child in path.iterdir() if any(child.glob(f"version_*/{RECORD}")))
    if runs:
        raise ModelError(f"{path} is a folder of runs: name one of {', '.join(runs[:10])}")
    return path


def find_record(source: str) -> Path | None:
    """Find the record of the run that `source` is the directory of, or a checkpoint in it; None where there is none."""
    path = Path(source).absolute()
    folders = path.parents[:2] if path.suffix == ".ckpt" else [_run_directory(path)]
    return next((folder / RECORD for folder in folders if (folder / RECORD).is_file()), None)


def read_record(source: str) -> RunFile | None:
    """Read the record of the run that `source` is the directory of, or a checkpoint in it; None where there is none.

    Raises:
        ModelError: if the record is damaged, or of a later version of narrlit.
    """
    path = find_record(source)
    return None if path is None else RunFile.read(path)


def seen_in_training(model: str, sha256: str) -> str | None:
    """Describe why a model's accuracy on triples is no result; None if it is one.

    Args:
        model: name of the model; the record of its run names the files that it was trained on.
        sha256: of the file of triples.

    Raises:
        ModelError: if the record is broken.
    """
    path = find_record(model)
    if path is None:
        return None
    record = RunFile.read(path)
    trained = {file.sha256: file.path for file in record.data_of("train").files}
    validated = {file.sha256: file.path for file in record.data_of("validation").files}
    trained_on_validation = record.flags.trained_on_validation
    file = trained.get(sha256)
    if file is None and trained_on_validation:
        file = validated.get(sha256)
    if file is not None:
        return f"trained on these triples: no result ({path.parent.name} trained on {file})"
    if trained_on_validation:
        names = ", ".join(validated.values()) or "unnamed"
        return f"trained on triples that it was validated by ({names}): no result where these are among them"
    return None


def pseudonyms_of(source: str) -> PseudonymRecord | None:
    """Read how names were replaced in the stories that a run was trained on; None if they were not."""
    record = read_record(source)
    if record is None:
        return None
    pseudonyms = record.data_of("train").pseudonyms
    return None if pseudonyms is None or pseudonyms.backend == "none" else pseudonyms


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Read a checkpoint, tensors and plain data only; raise ModelError if it is broken or holds anything else."""
    with _reading_checkpoint(path):
        content = _read_sharded(path) if path.is_dir() else _read_whole(path)
        for name in ("state_dict", "hyper_parameters"):
            if not isinstance(content.get(name, {}), dict):
                raise ModelError(f"checkpoint {path}: {name} is no mapping; name another one")
        return content


def check_shard_table(folder: Path) -> None:
    """Check that the table of a sharded checkpoint holds nothing else; Lightning reads it without such a check.

    Raises:
        ModelError: if it is missing or broken, or holds anything else.
    """
    with _reading_checkpoint(folder):
        _shard_table(folder)


@contextmanager
def _reading_checkpoint(path: Path) -> Iterator[None]:
    with reading("checkpoint", path, "name another one", ModelError):
        try:
            yield
        except (pickle.UnpicklingError, RuntimeError) as error:  # torch's own message advises to run whatever is in it
            raise ModelError(f"checkpoint {path}: it is broken, or holds more than tensors and plain data") from error


def _read_whole(path: Path) -> dict[str, Any]:
    import torch

    return dict(torch.load(path, map_location="cpu", weights_only=True, mmap=True))


def _read_sharded(folder: Path) -> dict[str, Any]:
    """Read a sharded checkpoint, which is a folder: its weights in one piece, without the optimizer's state."""
    import torch
    from torch.distributed.checkpoint.state_dict_loader import load

    stored = _shard_table(folder).state_dict_metadata
    names = [name for name in stored if name.startswith("state_dict.")]
    weights = {name: torch.empty(stored[name].size, dtype=stored[name].properties.dtype) for name in names}
    with warnings.catch_warnings(action="ignore"):  # of there being one process only
        load(weights, checkpoint_id=folder, no_dist=True)
    content = dict(torch.load(folder / "meta.pt", map_location="cpu", weights_only=True))
    return content | {"state_dict": _part(weights, "state_dict.")}


def _shard_table(folder: Path) -> Any:
    with (folder / ".metadata").open("rb") as file:
        return _ShardTable(file).load()


class _ShardTable(pickle.Unpickler):
    """Reader of the table of shards that refuses any other class: torch's own reader would run code."""

    def find_class(self, module: str, name: str) -> Any:
        """Return a class by which torch describes shards."""
        import torch

        from narrlit.compat.torch import SHARD_CLASSES

        is_dtype = module == "torch" and isinstance(getattr(torch, name, None), torch.dtype)
        from_known_package = module.partition(".")[0] in ("torch", "pathlib")
        if not (from_known_package and (name in SHARD_CLASSES or is_dtype)):
            raise pickle.UnpicklingError(f"{module}.{name}")
        return super().find_class(module, name)


def _from_checkpoint(path: Path, trust_remote_code: bool, max_length: int | None) -> "Encoder":
    """Build the encoder of a checkpoint, with its head and its fusion of views."""
    from narrlit.models.encoder import Encoder
    from narrlit.models.heads import ViewFusion, build_head

    content = read_checkpoint(path)
    with reading("checkpoint", path, "is it a checkpoint of this release of narrlit?", ModelError):
        settings, weights = content.get("hyper_parameters", {}), content["state_dict"]
        if "encoder" not in settings:
            raise ModelError(f"checkpoint {path}: it holds no encoder of narrlit")
        config = EncoderConfig.from_dict(settings["encoder"])
        if max_length is not None:
            config = replace(config, max_length=max_length)
    encoder = Encoder(config, trust_remote_code=trust_remote_code)
    with reading("checkpoint", path, f"did {config.model} change since the training?", ModelError):
        if settings.get("head") is None:
            _load_trained(encoder, _part(weights, "encoder."))
        else:
            head = build_head(**settings["head"])
            head.load_state_dict(_part(weights, "head."))
            encoder.attach(head)
        if settings.get("views") is not None:
            views = ViewFusion(encoder.dimension, **settings["views"])
            views.load_state_dict(_part(weights, "views.") if views.heads is not None else {})
            encoder.attach(views)
    return encoder


def _part(weights: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return the weights whose names begin with a prefix, by their names without it."""
    return {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)}


def _load_trained(encoder: "Encoder", weights: Mapping[str, Any]) -> None:
    """Load a checkpoint's weights into an encoder whose frozen weights may be absent from the checkpoint.

    Raises:
        ValueError: if a trained weight is missing, or the weights are another model's.
    """
    trained = {name for name, parameter in encoder.named_parameters() if parameter.requires_grad}
    if encoder.config.quantization is not None:
        # Quantized weights can't be loaded over others, and are frozen.
        weights = {name: value for name, value in weights.items() if name in trained or ".lora_" in name}
    has_all_weights = encoder.config.lora is None and encoder.config.quantization is None
    try:
        result = encoder.load_state_dict(weights, strict=has_all_weights)
    except RuntimeError as error:
        raise ValueError("its weights do not fit the model") from error
    wrong = trained.intersection(result.missing_keys) or result.unexpected_keys
    if wrong:
        raise ValueError(f"its weights do not fit the model: {min(wrong)} is missing or unknown")


def language_warning(vocabulary: int, languages: Mapping[str, int]) -> str | None:
    """Describe texts that an encoder can't read; one with a small vocabulary is taken to read English alone.

    Args:
        vocabulary: number of tokens in the encoder's vocabulary.
        languages: number of texts in each language, as `detect_languages` counts them.

    Returns:
        One line, or None if the encoder reads the languages.
    """
    foreign = {language: count for language, count in languages.items() if language != "en"}
    if not foreign or vocabulary >= MULTILINGUAL:
        return None
    percentage = 100 * sum(foreign.values()) / sum(languages.values())
    most_frequent = sorted(foreign, key=lambda language: -foreign[language])[:5]
    return (
        f"warning: {percentage:.0f} % of the stories are not in English ({', '.join(most_frequent)}), and the model "
        f"has a vocabulary of one language ({vocabulary:,} tokens): use a multilingual model, such as "
        "sentence-transformers/paraphrase-multilingual-mpnet-base-v2"
    )
