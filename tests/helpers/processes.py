"""Functions run in several forks of the test's process, and five steps of training each objective over them."""

import os
import resource
from dataclasses import asdict
from types import SimpleNamespace

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from frozen_batches import built, packed
from torch import nn
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from narrlit.data.batch import ExampleBatch, PackedParts, PackedStories, UnlabelledBatch, ViewBatch
from narrlit.datamodules import StoryWorldData, story_tables
from narrlit.datamodules.story_data import LoaderOptions
from narrlit.distributed import averages, rank, world_size
from narrlit.embedding_cache.teacher import TeacherEmbeddings
from narrlit.errors import OptionError
from narrlit.models.config import BiLSTMConfig, EncoderConfig, Fusion
from narrlit.models.heads import ViewFusion
from narrlit.models.weights import build_encoder, trained_weights
from narrlit.objectives import (
    AspectBiLSTM,
    Aspects,
    MLPHead,
    MultipleNegativesRanking,
    MultiView,
    PassageMatching,
    Projection,
    SelfDistillation,
    Triplet,
)
from narrlit.preprocessing.pseudonyms import PseudonymOptions

STORIES, STEPS, WORLD = 16, 5, 2
PASSAGES = 3


def in_processes(folder, function, *arguments):
    """Run function(*arguments) in two forks that form a process group; their results, by rank."""
    mp.start_processes(_work, args=(folder, function, arguments), nprocs=WORLD, start_method="fork")
    return [torch.load(folder / f"result_{number}", weights_only=False) for number in range(WORLD)]


def _work(number, folder, function, arguments):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{folder}/meeting", rank=number, world_size=WORLD)
    torch.save(function(*arguments), folder / f"result_{number}")
    dist.barrier()
    dist.destroy_process_group()
    if number == 0:
        (folder / "meeting").unlink(missing_ok=True)


def fork_under_torchrun(main, port, nodes=1):
    """Run main() in two forks with the variables that torchrun sets, on one node or on two; their exit codes."""

    def child(number):
        torch.set_num_threads(1)
        node, local = (number, 0) if nodes > 1 else (0, number)
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(WORLD)}
        os.environ |= {"RANK": str(number), "LOCAL_RANK": str(local), "GROUP_RANK": str(node)}
        os.environ |= {"LOCAL_WORLD_SIZE": str(WORLD // nodes), "TORCHELASTIC_RUN_ID": "tests"}
        os._exit(main(number))

    context = mp.get_context("fork")
    processes = [context.Process(target=child, args=(number,)) for number in range(WORLD)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(300)
    return [process.exitcode for process in processes]


def launch_on_two_nodes(main, port):
    """Run main() by torchrun's own agents, one on each of two nodes, whose workers are forks; their errors, by node."""

    def agent(node, errors):
        config = LaunchConfig(
            min_nodes=WORLD,
            max_nodes=WORLD,
            nproc_per_node=1,
            rdzv_backend="static",
            rdzv_endpoint=f"127.0.0.1:{port}",
            rdzv_configs={"rank": node},
            run_id="tests",
            start_method="fork",
            max_restarts=0,
        )
        try:
            elastic_launch(config, main)()
            errors.put((node, None))
        except Exception as error:  # noqa: BLE001  (the test shows it)
            errors.put((node, repr(error)))

    context = mp.get_context("fork")
    errors = context.SimpleQueue()
    agents = [context.Process(target=agent, args=(node, errors)) for node in range(WORLD)]
    for process in agents:
        process.start()
    for process in agents:
        process.join(300)
    return dict(sorted(errors.get() for _ in agents if not errors.empty()))


def peak_memory():
    """Most memory that this process has had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def pseudonymized():
    """Set up data whose names are replaced, twice: calls in this process, texts, and the second's error."""
    calls, original = [], story_tables.pseudonymize_texts

    def counted(*arguments, **options):
        calls.append(1)
        if len(calls) > 1:
            raise OptionError("missing_pipeline", name="en_core_web_sm")
        return original(*arguments, **options)

    story_tables.pseudonymize_texts = counted
    data = StoryWorldData(train=4, validation=0, loading=LoaderOptions(pseudonyms=PseudonymOptions("given")))
    data.setup("fit")
    try:
        StoryWorldData(train=4, validation=0, loading=LoaderOptions(pseudonyms=PseudonymOptions("given"))).setup("fit")
    except OptionError as error:
        return len(calls), [story.text for story in data.stories], error.code


# Objectives ----------------------------------------------------------------------------------------------------------


class Lookup(nn.Module):
    """Stands for the encoder: one trained vector a story or view."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(4 * STORIES, 8, generator=torch.Generator().manual_seed(3)))

    def forward(self, stories):
        return nn.functional.normalize(self.table[stories.indices], dim=1)


def objectives():
    """Each objective with its losses at full strength, by name."""
    unused, lookup = EncoderConfig("unused"), {}
    lookup["ranking"] = MultipleNegativesRanking(unused, scale=5.0)
    lookup["pairs"] = MultipleNegativesRanking(unused, scale=5.0, candidates="pairs")
    lookup["sum"] = MultipleNegativesRanking(unused, scale=5.0, reduction="sum")
    lookup["triplet"] = Triplet(unused, margin=0.8)
    lookup["adaptive"] = Triplet(unused, distance="squared_euclidean", margin=0.5, maximum_margin=1.5)
    lookup["passages"] = PassageMatching(unused, scale=5.0, passages=PASSAGES, whole=0.5)
    lookup["soft passages"] = PassageMatching(unused, scale=5.0, passages=PASSAGES, sharpness=10.0)
    lookup["distillation"] = SelfDistillation(unused, use_triple_negative=True, mask_margin=0.3)
    lookup["views"] = MultiView(unused, hidden=6)
    lookup["aligned views"] = MultiView(unused, hidden=6, alignment_terms="views")
    for objective in lookup.values():
        objective.encoder = Lookup()
    teacher = torch.randn(STORIES, 5, generator=torch.Generator().manual_seed(4))
    lookup["distillation"].teacher = TeacherEmbeddings(teacher + 1.0)
    lookup["distillation"].trainer = SimpleNamespace(global_step=0, estimated_stepping_batches=20)
    for name in ("views", "aligned views"):
        torch.manual_seed(0)
        lookup[name].views = ViewFusion(8, asdict(Fusion()), hidden=6)
    heads = {
        "projection": Projection(margin=0.8, noise=1.0),
        "mlp": MLPHead(hidden=[10], output=6),
        "aspects": AspectBiLSTM(bilstm=BiLSTMConfig(output=8, dropout=0), aspects=Aspects(margin=2.0)),
        "all labels": AspectBiLSTM(bilstm=BiLSTMConfig(output=8, dropout=0), aspects=Aspects("all", margin=2.0)),
        "labeled": AspectBiLSTM(
            bilstm=BiLSTMConfig(output=8, dropout=0), aspects=Aspects(margin=2.0, divisor="labeled")
        ),
    }
    return lookup | {name: built(objective) for name, objective in heads.items()}


def joint_batch(step):
    """Eight examples over the stories with 0 to 3 negatives: the second process's four have one, in step 2 none."""
    chance = torch.Generator().manual_seed(step)
    order = torch.randperm(STORIES, generator=chance)
    negatives = torch.randint(STORIES, (8, 3), generator=chance)
    negatives[3, 1:] = negatives[4:] = -1
    negatives[5, 1] = -1 if step == 2 else order[0]
    kinds = torch.randint(3, (8, 3), generator=chance).masked_fill(negatives < 0, -1)
    lengths = torch.randint(1, 4, (STORIES,), generator=chance).tolist()
    stories = packed(lengths, 0, seed=step)
    batch = ExampleBatch(stories, order[:8], order[8:], negatives, kinds, groups=stories.indices)
    batch.pseudo_labels = torch.randint(-1, 2, (STORIES, 3), generator=chance)
    return batch


def own_batch(name, step, rows):
    """These rows of the joint batch, for the objective of that name."""
    batch = joint_batch(step)
    batch.anchors = batch.anchors[rows]
    batch.positives = batch.positives[rows]
    batch.negatives = batch.negatives[rows]
    batch.kinds = batch.kinds[rows]
    if name in ("aspects", "all labels", "labeled"):
        unlabelled = packed([2] * 8, STORIES, seed=9).select(range(8)[rows])
        labels = torch.randint(2, (8, 3), generator=torch.Generator().manual_seed(step))[rows]
        batch.unlabelled = UnlabelledBatch(unlabelled, labels)
    elif name in ("projection", "mlp"):
        batch.stories = packed([1] * STORIES, 0, seed=step)
    elif name in ("passages", "soft passages"):
        whole = name == "passages"
        batch.stories = stories_in_passages(1 + step % 2, whole)
    elif name in ("views", "aligned views"):
        others = joint_batch(step).anchors.roll(-1)[rows]
        pieces = PackedStories(torch.zeros(4 * STORIES), (1,) * 4 * STORIES, torch.arange(4 * STORIES))
        views = PackedParts(pieces, torch.arange(4 * STORIES).view(STORIES, 4), torch.arange(STORIES))
        return ViewBatch(views, batch.anchors, others)
    else:
        batch.stories = PackedStories(torch.zeros(STORIES), (1,) * STORIES, torch.arange(STORIES))
    return batch


def stories_in_passages(shortest, whole):
    """Stories with `shortest` to 3 passages, and with their whole texts if `whole`."""
    parts = torch.arange(4 * STORIES).view(STORIES, 4)
    counts = torch.arange(STORIES) % (PASSAGES + 1 - shortest) + shortest
    parts[:, :PASSAGES][torch.arange(PASSAGES) >= counts[:, None]] = -1
    pieces = PackedStories(torch.zeros(4 * STORIES), (1,) * 4 * STORIES, torch.arange(4 * STORIES))
    return PackedParts(pieces, parts if whole else parts[:, :PASSAGES], torch.arange(STORIES))


def train_each():
    """Train every objective on this process's rows: its logged terms of each step, its weights, how far they moved."""
    own = 8 // world_size()
    rows = slice(rank() * own, (rank() + 1) * own)
    trained = {}
    for name, objective in objectives().items():
        before = {key: value.detach().clone() for key, value in objective.named_parameters()}
        optimizer = torch.optim.SGD(objective.parameters(), 0.3)
        logged = []
        for step in range(STEPS):
            batch = objective.on_before_batch_transfer(own_batch(name, step, rows), 0)
            terms = objective.loss(objective.training_embeddings(batch.stories), batch)
            terms["loss"].backward()
            for parameter in objective.parameters():  # as DDP does
                dist.all_reduce(parameter.grad) if world_size() > 1 else None
                parameter.grad /= world_size()
            optimizer.step()
            optimizer.zero_grad()
            logged.append({key: value.item() for key, value in averages(terms).items()})
        weights = {key: value.detach() for key, value in objective.named_parameters()}
        moved = max(float((weights[key] - before[key]).abs().max()) for key in weights)
        trained[name] = {"logged": logged, "weights": weights, "moved": moved}
    return trained


# Sharded encoders ----------------------------------------------------------------------------------------------------


def train_sharded(config, texts):
    """Train an encoder on half of the texts by what its embeddings sum up to, sharded if there are two processes.

    Returns embeddings of all texts before, trained weights after and gradients of the last step, whole.
    """
    mesh = None
    if world_size() > 1:
        mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (1, WORLD))
    encoder = build_encoder(config, mesh)
    ids, _ = encoder.tokenize(texts)
    target = torch.randn(len(texts), encoder.dimension, generator=torch.Generator().manual_seed(1))
    stories = PackedStories(
        torch.tensor([token for text in ids for token in text]), tuple(map(len, ids)), torch.arange(len(texts))
    )
    own = list(range(rank(), len(texts), world_size()))
    # adapters with a scale of 2 learn fast
    rate = 0.05 if config.lora is None else 0.002
    gradients = {}
    optimizer = torch.optim.SGD([p for p in encoder.parameters() if p.requires_grad], rate)
    with torch.no_grad():
        before = encoder(stories).float()
    for _ in range(STEPS):
        (encoder(stories.select(own)).float() * target[own]).sum(1).mean().backward()
        for name, parameter in encoder.named_parameters():
            if parameter.requires_grad:
                gradients[name] = getattr(parameter.grad, "full_tensor", parameter.grad.clone)().clone()
        optimizer.step()
        optimizer.zero_grad()
    buffers = {name: buffer.clone() for name, buffer in encoder.named_buffers()}
    return {"before": before, "weights": trained_weights(encoder), "gradients": gradients, "buffers": buffers}
