"""Tries for narrlit-mini beside `narrlit fit`: crops of stories as versions, and distillation of a larger encoder.

    python benchmarks/model_tries.py crops tell_me_again_triplets.jsonl crops.csv
    python benchmarks/model_tries.py distill all-mpnet-base-v2 tell_me_again_triplets.jsonl --out distilled

`crops` halves summaries: the two halves of one are versions of each other. `distill` trains MiniLM with a LoRA adapter
so that the similarities of stories within a batch are those of the larger encoder, and writes two model folders: the
trained model, and one half of the way from the frozen encoder to it. benchmarks/model_choice.py compares the models.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd
import torch
from peft import LoraConfig
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn
from tqdm import tqdm

import narrlit
from narrlit.data.twice_told import training_tellings
from narrlit.models.capabilities import has_bf16
from narrlit.models.packaged import packaged_minilm
from narrlit.preprocessing.sentences import split_sentences

CROPPED = 600
"""Number of summaries that are halved."""
BATCH, EPOCHS, LEARNING_RATE = 64, 3, 5e-4
SEED = 1


def anchors(triples: Path) -> list[str]:
    """Read the different anchors of triples."""
    table = narrlit.read_triples(str(triples))
    return list(dict.fromkeys(anchor for anchor, _, _ in table.texts()))


def write_crops(triples: Path, out: Path) -> None:
    """Write the halves of summaries of four or more sentences as a table of versions."""
    rows = []
    for number, text in enumerate(anchors(triples)):
        sentences = split_sentences(text)
        if len(sentences) < 4:
            continue
        middle = len(sentences) // 2
        rows += [
            {"plot": f"summary {number}", "world": "summaries", "text": " ".join(half)}
            for half in (sentences[:middle], sentences[middle:])
        ]
    pd.DataFrame(rows[: 2 * CROPPED]).to_csv(out, index=False)


def batches(count: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Yield the positions of each batch of an epoch, in random order."""
    yield from torch.split(torch.randperm(count, generator=generator), BATCH)


def similarities(vectors: Tensor) -> Tensor:
    """Compute the (B, B) cosine similarities of (B, D) vectors."""
    unit = nn.functional.normalize(vectors, dim=1)
    return unit @ unit.T


def fast_precision() -> torch.autocast:
    """Compute in bfloat16 inside the `with` block, where this processor has instructions for it."""
    return torch.autocast("cpu", torch.bfloat16, enabled=has_bf16(torch.device("cpu")))


def train(student: SentenceTransformer, texts: Sequence[str], teacher_vectors: Tensor) -> None:
    """Train a student so that its similarities within a batch are the teacher's."""
    generator = torch.Generator().manual_seed(SEED)
    trained = [parameter for parameter in student.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=LEARNING_RATE, weight_decay=0.0)
    steps = EPOCHS * -(-len(texts) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, LEARNING_RATE, total_steps=steps, anneal_strategy="linear"
    )
    student.train()
    bar = tqdm(total=steps, unit="step")
    for _ in range(EPOCHS):
        for positions in batches(len(texts), generator):
            features = student.tokenize([texts[position] for position in positions.tolist()])
            with fast_precision():
                vectors = student(features)["sentence_embedding"].float()
            error = similarities(vectors) - similarities(teacher_vectors[positions])
            loss = error.square().mean()
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
            bar.update()
            bar.set_postfix(loss=f"{loss.item():.4f}")
    student.eval()


def distill(teacher: str, triples: Path, out: Path, limit: int | None) -> None:
    """Train MiniLM on the similarities of a larger encoder, and write it and the model half of the way to it."""
    texts = [*anchors(triples), *(telling.text for telling in training_tellings()[::2])][:limit]
    larger = SentenceTransformer(teacher, device="cpu")
    with fast_precision():
        teacher_vectors = larger.encode(texts, batch_size=16, show_progress_bar=True, convert_to_tensor=True).float()

    torch.manual_seed(SEED)
    student = SentenceTransformer(str(packaged_minilm()), device="cpu")
    student.max_seq_length = 192
    student.add_adapter(LoraConfig(r=16, lora_alpha=32, lora_dropout=0.0, target_modules="all-linear"))
    train(student, texts, teacher_vectors)

    adapters = {name: value for name, value in student.state_dict().items() if ".lora_" in name}
    for share in (1.0, 0.5):
        write_merged(adapters, share, out.with_name(f"{out.name}_{share}"))


def write_merged(adapters: dict[str, Tensor], share: float, out: Path) -> None:
    """Write MiniLM with an adapter that goes a share of the way, merged into its weights."""
    model = SentenceTransformer(str(packaged_minilm()), device="cpu")
    weights = dict(model.named_parameters())
    for name, down in adapters.items():
        if ".lora_A." not in name:
            continue
        up = adapters[name.replace(".lora_A.", ".lora_B.")]
        layer = name.partition(".lora_A.")[0]
        weights[f"{layer}.weight"].data += share * 2.0 * (up @ down)  # 2 = alpha / rank
    model.save_pretrained(str(out))


def main() -> None:
    """Run one of the two."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    crops = commands.add_parser("crops")
    crops.add_argument("triples", type=Path)
    crops.add_argument("out", type=Path)
    distillation = commands.add_parser("distill")
    distillation.add_argument("teacher")
    distillation.add_argument("triples", type=Path)
    distillation.add_argument("--out", type=Path, required=True)
    distillation.add_argument("--stories", type=int, help="number of stories to train on; default: all")
    options = parser.parse_args()
    if options.command == "crops":
        write_crops(options.triples, options.out)
    else:
        distill(options.teacher, options.triples, options.out, options.stories)


if __name__ == "__main__":
    main()
