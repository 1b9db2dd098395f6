"""Private names of other packages: each does what it is used for, and none is used outside `narrlit.compat`."""

import ast
import importlib
import inspect
import platform
import socket
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from jsonargparse import ArgumentParser, Namespace
from safetensors.torch import load_file
from torch import nn

import narrlit
from narrlit.compat import lightning as compat_lightning
from narrlit.compat import torch as compat_torch
from narrlit.compat.cyclopts import refuse_inexact_numbers
from narrlit.compat.datasets import offline
from narrlit.compat.jsonargparse import merge_settings
from narrlit.compat.openai import http_library
from narrlit.compat.torchmetrics import is_synced
from narrlit.compat.transformers import missing_weights
from narrlit.models.adapters import merge_loaded

SOURCE = Path(narrlit.__file__).parent
X86 = platform.machine().lower() in {"x86_64", "amd64"}


@contextmanager
def canary(package, name):
    """Say where to look when a release of a package changes what the block tests."""
    try:
        yield
    except Exception as error:
        message = f"{package} {version(package)} changed: look at narrlit.compat.{name} ({error!r})"
        raise AssertionError(message) from error


def test_a_canary_says_where_to_look():
    expected = r"torch .* changed: look at narrlit\.compat\.torch\.has_hooks"
    with pytest.raises(AssertionError, match=expected), canary("torch", "torch.has_hooks"):
        raise AttributeError


# cyclopts


@pytest.mark.parametrize(("kind", "text"), [(int, "1.5"), (float, "nan"), (float, "-inf")])
def test_cyclopts_refuses_inexact_numbers(kind, text):
    with canary("cyclopts", "cyclopts.refuse_inexact_numbers"):
        from cyclopts import CoercionError, convert

        refuse_inexact_numbers()
        assert convert(kind, ["2"]) == 2
        with pytest.raises(CoercionError):
            convert(kind, [text])


def test_cyclopts_has_no_public_way_for_optional_numbers_yet():
    from cyclopts import App, Parameter

    types = []
    app = App(
        default_parameter=Parameter(converter=lambda kind, tokens: types.append(kind)), result_action="return_value"
    )

    @app.default
    def command(*, number: int | None = 1) -> None:
        pass

    app(["--number", "none"], exit_on_error=False)
    message = "Parameter(converter=...) gets the whole type: it can replace narrlit.compat.cyclopts"
    assert types == [int], message


# Lightning, torchmetrics


def test_jsonargparse_merges_settings_without_defaults_and_without_required_ones():
    def options(*, name: str, sizes: "dict[str, int] | None" = None, epochs: int = 1) -> None: ...

    with canary("jsonargparse", "jsonargparse.merge_settings"):
        parser = ArgumentParser(exit_on_error=False)
        parser.add_function_arguments(options)
        given = {"epochs": "3", "sizes": {"a": 1}}
        config = merge_settings(parser, given, Namespace(epochs=2))
        assert config.as_dict() == {"epochs": 3, "sizes": {"a": 1}}
        assert given == {"epochs": "3", "sizes": {"a": 1}}


def test_jsonargparse_has_no_public_way_to_merge_settings_yet():
    message = "parse_object(skip_validation=...) can replace narrlit.compat.jsonargparse"
    assert "skip_validation" not in inspect.signature(ArgumentParser.parse_object).parameters, message


@pytest.mark.parametrize("shares", [True, False])
def test_lightning_keeps_the_option_of_the_distributed_sampler(shares):
    with canary("lightning", "lightning.uses_distributed_sampler"):
        from lightning import Trainer

        trainer = Trainer(accelerator="cpu", use_distributed_sampler=shares, logger=False, enable_progress_bar=False)
        assert compat_lightning.uses_distributed_sampler(trainer) is shares


def test_a_whole_number_of_batches_stays_one_whatever_was_imported_before():
    def options(batches: "float | int | None" = None, epochs: int = 1) -> None: ...

    options.__annotations__["batches"] = float | int | None
    compat_lightning.read_whole_numbers_as_such(options)

    parser = ArgumentParser()
    parser.add_function_arguments(options)
    assert repr(parser.parse_args(["--batches=1"]).batches) == "1"
    assert repr(parser.parse_args(["--batches=0.5"]).batches) == "0.5"
    assert parser.parse_args(["--batches=null"]).batches is None


def test_a_share_is_a_number_where_text_is_accepted_too():
    def options(interval: "int | float | str | None" = None) -> None: ...

    options.__annotations__["interval"] = int | str | float | None
    compat_lightning.read_whole_numbers_as_such(options)

    parser = ArgumentParser()
    parser.add_function_arguments(options)
    for text, value in (("1", 1), ("0.5", 0.5), ("1.0", 1.0), ("00:01:00:00", "00:01:00:00")):
        assert repr(parser.parse_args([f"--interval={text}"]).interval) == repr(value)


def test_lightning_saves_after_epochs_beside_steps(tmp_path):
    with canary("lightning", "lightning.save_after_epochs"):
        from lightning.pytorch.callbacks import ModelCheckpoint

        callback = ModelCheckpoint(dirpath=tmp_path, every_n_train_steps=5)
        assert callback.every_n_epochs == 0
        compat_lightning.save_after_epochs(callback)
        assert callback.every_n_epochs == 1


def test_lightning_saves_by_the_method_that_a_replacing_checkpoint_overrides(tmp_path):
    with canary("lightning", "lightning.ReplacingCheckpoint"):
        from lightning.pytorch.callbacks import ModelCheckpoint

        assert list(inspect.signature(ModelCheckpoint._save_checkpoint).parameters) == ["self", "trainer", "filepath"]
        assert "self._save_checkpoint(" in inspect.getsource(ModelCheckpoint)
        written = []

        def save(path, weights_only=None):
            written.append(Path(path).name)
            Path(path).mkdir()

        strategy = SimpleNamespace(broadcast=lambda value: value, barrier=lambda: None)
        trainer = SimpleNamespace(
            strategy=strategy, is_global_zero=True, global_step=3, loggers=[], save_checkpoint=save
        )
        callback = compat_lightning.ReplacingCheckpoint(dirpath=tmp_path)
        for _ in range(2):
            callback._save_checkpoint(trainer, str(tmp_path / "last.ckpt"))
        assert written == ["last.ckpt", "last.new"]
        assert [path.name for path in tmp_path.iterdir()] == ["last.ckpt"]
        assert callback._last_checkpoint_saved == str(tmp_path / "last.ckpt")


def test_torchmetrics_tells_a_synced_metric():
    with canary("torchmetrics", "torchmetrics.is_synced"):
        from torchmetrics import SumMetric

        metric = SumMetric(dist_sync_fn=lambda value, group: [value, value], distributed_available_fn=lambda: True)
        metric.update(2.0)
        assert not is_synced(metric)
        with metric.sync_context(dist_sync_fn=metric.dist_sync_fn):
            assert is_synced(metric)
        assert not is_synced(metric)


# openai


def test_openai_derives_its_client_from_an_http_library():
    openai = pytest.importorskip("openai")
    with canary("openai", "openai.http_library"):
        library = http_library(openai)
        assert library.__name__ in ("httpx", "httpx2")
        assert issubclass(openai.DefaultAsyncHttpxClient, library.AsyncClient)
        assert library.Response(200, content=b"{}").json() == {}
        assert issubclass(library.ReadTimeout, Exception)


# torch


def test_torch_lists_hooks():
    with canary("torch", "torch.has_hooks"):
        module = nn.Linear(2, 2)
        assert not compat_torch.has_hooks(module)
        before = module.register_forward_pre_hook(lambda *_: None)
        assert compat_torch.has_hooks(module)
        before.remove()
        module.register_forward_hook(lambda *_: None)
        assert compat_torch.has_hooks(module)


def test_torch_moves_the_parts_of_a_module_by_the_method_that_is_overridden():
    class Part(compat_torch.MovableModule):
        dtypes = ()

        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(2, 2)

        def moved(self):
            self.dtypes = (*self.dtypes, self.linear.weight.dtype)

    with canary("torch", "torch.MovableModule"):
        whole = nn.Sequential(Part())
        assert whole.half() is whole
        whole[0].to(torch.float64)
        assert whole[0].dtypes == (torch.float16, torch.float64)


@pytest.mark.skipif(not X86, reason="other processors have other kernels behind the operators")
@pytest.mark.parametrize(("activation", "function"), [("none", nn.Identity()), ("gelu", nn.GELU())])
def test_torch_computes_linear_layers_by_onednn(activation, function):
    with canary("torch", "torch.linear_pointwise"), torch.no_grad():
        assert compat_torch.has_linear_pointwise()
        linear, x = nn.Linear(8, 4), torch.linspace(-2, 2, 24).view(3, 8)
        weight = compat_torch.reordered_weight(linear.weight)
        output = compat_torch.linear_pointwise(x, weight, linear.bias, activation)
        # float32 sums of eight products, added in another order.
        assert torch.allclose(output, function(linear(x)), atol=1e-6)


def test_torch_tells_whether_onednn_has_bf16(monkeypatch):
    with canary("torch", "torch.mkldnn_has_bf16"):
        if X86:
            assert hasattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported")
        assert isinstance(compat_torch.mkldnn_has_bf16(), bool)
        monkeypatch.setattr(torch.ops, "mkldnn", SimpleNamespace())
        assert compat_torch.mkldnn_has_bf16() is False


def test_torch_computes_the_gradient_of_a_softmax():
    with canary("torch", "torch.softmax_gradient"):
        x = torch.linspace(-1, 1, 12).view(3, 4).requires_grad_()
        softmax, gradient = x.softmax(-1), torch.linspace(0, 1, 12).view(3, 4)
        softmax.backward(gradient)
        # Both in float32, where a sum may be taken in another order.
        assert torch.allclose(compat_torch.softmax_gradient(gradient, softmax.detach()), x.grad, atol=1e-7)


def test_lightning_clips_gradients_of_a_fused_optimizer_only_by_the_mark():
    with canary("torch", "torch.allow_clipping"):
        from lightning.fabric.plugins.precision.amp import _optimizer_handles_unscaling

        optimizer = torch.optim.AdamW([nn.Parameter(torch.ones(2))], fused=True)
        assert _optimizer_handles_unscaling(optimizer)
        compat_torch.allow_clipping(optimizer)
        assert not _optimizer_handles_unscaling(optimizer)


def test_torch_describes_shards_by_the_classes_that_are_allowed():
    with canary("torch", "torch.SHARD_CLASSES"):
        from torch.distributed.checkpoint import metadata

        described = [name for name in compat_torch.SHARD_CLASSES if hasattr(metadata, name)]
        assert {"Metadata", "MetadataIndex", "TensorProperties", "_MEM_FORMAT_ENCODING"} <= set(described)
        filesystem = importlib.import_module("torch.distributed.checkpoint.filesystem")
        assert hasattr(filesystem, "_StorageInfo")


# transformers


@pytest.mark.parametrize("empty", [True, False])
def test_sentence_transformers_loads_by_the_method_that_is_watched(tiny, empty):
    from sentence_transformers import SentenceTransformer
    from transformers import PreTrainedModel

    folder = tiny()
    original = PreTrainedModel.__dict__["from_pretrained"]
    with canary("transformers", "transformers.missing_weights"):
        with missing_weights(empty) as missing:
            options = {"dtype": torch.float16}
            model = SentenceTransformer(folder, device="meta" if empty else "cpu", model_kwargs=options)
        assert missing == set()
        weight = model[0].auto_model.get_input_embeddings().weight
        assert (weight.device.type, weight.dtype) == ("meta" if empty else "cpu", torch.float16)
    assert PreTrainedModel.__dict__["from_pretrained"] is original


def test_a_model_whose_adapter_is_forgotten_is_saved_as_one_without(tiny, tmp_path):
    from peft import LoraConfig
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(tiny(), device="cpu")
    names = set(model[0].model.state_dict())
    model.add_adapter(LoraConfig(target_modules=["query"]))
    model.save(str(tmp_path / "adapted"))
    transformer = SentenceTransformer(str(tmp_path / "adapted"), device="cpu")[0].model
    with canary("transformers", "transformers.forget_adapter"):
        merge_loaded(transformer)
        transformer.save_pretrained(tmp_path / "plain")
        assert not list((tmp_path / "plain").glob("adapter*"))
        assert set(load_file(tmp_path / "plain" / "model.safetensors")) == names


# datasets


def test_datasets_reach_no_network_while_they_are_offline(monkeypatch, tmp_path):
    import datasets
    from huggingface_hub import constants

    def connect(*_):
        raise AssertionError("the network was reached")

    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    monkeypatch.setattr(socket, "getaddrinfo", connect)
    with canary("datasets", "datasets.offline"):
        with offline(), pytest.raises((ConnectionError, FileNotFoundError)):
            datasets.load_dataset("owner/not-cached")
        assert (datasets.config.HF_HUB_OFFLINE, constants.HF_HUB_OFFLINE) == (False, False)


# The rule


PUBLIC = ("_exit", "_asdict", "_replace")
"""Names with an underscore that their package documents: os._exit, and methods of named tuples."""


def is_private(name):
    return name.startswith("_") and not name.startswith("__") and name not in PUBLIC


def own_names(trees):
    """Private names that narrlit defines: functions, classes, variables, fields, attributes of self."""
    names = set()
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_self(node.value):
                names.add(node.attr)
    return names


def is_self(node):
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def foreign_uses(tree, own):
    """(line, text) of each private name of another package that a file imports, reads, writes or tests for."""
    for node in ast.walk(tree):
        if any(is_private(name) and name not in own for name in foreign_names(node)):
            yield node.lineno, ast.unparse(node)


def foreign_names(node):
    """Names that a node imports, reads or writes, and that may be another package's."""
    match node:
        case ast.ImportFrom(module=module, names=names) if not module.startswith("narrlit"):
            return [*module.split("."), *(alias.name for alias in names)]
        case ast.Import(names=names):
            return ".".join(alias.name for alias in names).split(".")
        case ast.Attribute(attr=name):
            return [name]
        case ast.Call(func=ast.Name("getattr" | "hasattr" | "setattr" | "delattr"), args=[_, ast.Constant(name), *_]):
            return [str(name)]
    return []


def foreign_overrides(tree, module):
    """(line, text) of each private method or attribute in a class that a base from another package has, too."""
    for node in tree.body:
        if not isinstance(node, ast.ClassDef):
            continue
        bases = [base for base in getattr(module, node.name).__mro__ if is_foreign(base)]
        source = "\n".join(inspect.getsource(base) for base in bases)
        for name in own_names([node]):
            if is_private(name) and (
                f"self.{name} " in source or f"self.{name}:" in source or f"def {name}(" in source
            ):
                yield node.lineno, f"{node.name}.{name}"


def is_foreign(base):
    package = base.__module__.partition(".")[0]
    return package not in ("narrlit", "builtins", "abc", "typing", "collections", "enum", "_pickle", "pickle")


def outside_compat():
    return [path for path in sorted(SOURCE.rglob("*.py")) if path.relative_to(SOURCE).parts[0] != "compat"]


def test_private_names_of_other_packages_are_used_in_compat_alone():
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in outside_compat()}
    own = own_names(trees.values())
    uses = [f"{path}:{line}: {text}" for path, tree in trees.items() for line, text in foreign_uses(tree, own)]
    assert not uses, "move to narrlit.compat:\n" + "\n".join(uses)


FOREIGN_BASES = (
    "Callback",
    "ModelCheckpoint",
    "Module",
    "Logger",
    "Metric",
    "IO",
    "CLI",
    "Writer",
    "Bar",
    "Data",
    "Model",
)
"""Endings of the classes of other packages that narrlit derives from, whose private names it may not use either."""


@pytest.mark.long
def test_no_class_outside_compat_overrides_a_private_name():
    uses = []
    for path in outside_compat():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        bases = [ast.unparse(base) for node in tree.body if isinstance(node, ast.ClassDef) for base in node.bases]
        if any(base.endswith(FOREIGN_BASES) for base in bases):
            name = ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)
            module = importlib.import_module(name)
            uses += [f"{path}:{line}: {text}" for line, text in foreign_overrides(tree, module)]
    assert not uses, "rename, or move to narrlit.compat:\n" + "\n".join(uses)


@pytest.mark.parametrize(
    "line",
    [
        "from cyclopts._convert import thing",
        "from transformers import _thing",
        "import torch._C",
        "trainer._accelerator_connector.flag",
        "optimizer._mark = False",
        "getattr(torch.ops, '_operator', None)",
    ],
)
def test_the_rule_finds_a_private_name(line):
    assert [number for number, _ in foreign_uses(ast.parse(line), own={"_own"})] == [1]
    assert not list(
        foreign_uses(ast.parse("story._own; getattr(story, 'text'); from narrlit.data import _x"), {"_own"})
    )


def test_the_rule_finds_an_override():
    module = SimpleNamespace(Moved=compat_torch.MovableModule)
    tree = ast.parse("class Moved(nn.Module):\n    def _apply(self): pass\n    def _own(self): self._buffers = {}")
    assert sorted(text for _, text in foreign_overrides(tree, module)) == ["Moved._apply", "Moved._buffers"]
