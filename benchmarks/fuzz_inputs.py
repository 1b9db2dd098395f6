"""Valid inputs of every command, made on the spot from StoryWorld, and command lines that read them."""

import importlib
import json
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from narrlit.data.storyworld import StoryWorld
from narrlit.data.writers import write_table

HELPERS = Path(__file__).parents[1] / "tests" / "helpers"
RUN_NARRLIT = Callable[[Sequence[str]], int]
"""Runs a command line in the current folder; returns its exit code."""
SLOW, QUICK = 1, 8
"""How often a job is drawn: fits take seconds, most other commands a tenth of that."""
OUTPUT_OPTIONS = (
    "--out",
    "--groups",
    "--filled",
    "--map",
    "--report",
    "--log",
    "--answer-cache",
    "--trainer.default_root_dir",
)


@dataclass(frozen=True)
class Job:
    """A command line that succeeds on the valid inputs.

    Attributes:
        words: the command line, run in a folder with the inputs.
        weight: how often the job is drawn, in relation to others.
        state: inputs that the command also writes to, such as caches; they may change.
    """

    words: tuple[str, ...]
    weight: int = QUICK
    state: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """The command's name."""
        return " ".join(self.words[: 2 if self.words[0] == "data" else 1])

    def inputs(self, template: Path) -> list[str]:
        """List the template's files and folders that the words name, each once; those that are written to, too."""
        names = [part.removeprefix("meanmax:") for word in self.words for part in word.split(",")]
        known = (name for name in dict.fromkeys([*names, *self.state]) if name not in ("", "."))
        return [name for name in known if (template / name).exists()]

    def outputs(self) -> set[str]:
        """List the names that the command may write to."""
        pairs = zip(self.words, self.words[1:], strict=False)
        return {value for option, value in pairs if option in OUTPUT_OPTIONS} | set(self.state)


# Inputs --------------------------------------------------------------------------------------------------------------


def write_template(folder: Path, run: RUN_NARRLIT) -> None:
    """Write every kind of input into a new folder; runs, indexes and caches are made by narrlit itself."""
    folder.mkdir(parents=True)
    with chdir(folder):
        _write_model()
        _write_data()
        _write_documents()
        for words in MAKERS:
            if run(words.split()) != 0:
                raise SystemExit(f"cannot make the inputs: narrlit {words}")
        _write_task()
        shutil.copy("run/checkpoints/last.ckpt", "weights.ckpt")


def helper(name: str) -> Any:
    """Import a module of the tests' helpers."""
    if str(HELPERS) not in sys.path:
        sys.path.append(str(HELPERS))
    return importlib.import_module(name)


def _write_model() -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Normalize, Pooling, Transformer

    models = helper("tiny_models")
    tokenizer = models.trained_tokenizer("bert")
    models.tiny_transformer("bert", tokenizer).save_pretrained("base")
    tokenizer.save_pretrained("base")
    modules = [Transformer("base", max_seq_length=96), Pooling(32, pooling_mode="mean"), Normalize()]
    SentenceTransformer(modules=modules, device="cpu").save("model")
    shutil.rmtree("base")


def _write_data() -> None:
    triples = StoryWorld(3).triples(8)
    rows = [
        {"anchor_text": t.anchor.text, "text_a": t.positive.text, "text_b": t.negative.text, "text_a_is_closer": True}
        for t in triples
    ]
    for row in rows[::2]:
        row.update(text_a=row["text_b"], text_b=row["text_a"], text_a_is_closer=False)
    world = [t.anchor for t in triples] + [t.positive for t in triples]
    texts = list(dict.fromkeys(story.text for story in world))
    stories = [
        {"id": f"s{n}", "text": text, "title": f"Story {n}", "type": "AB"[n % 2]} for n, text in enumerate(texts)
    ]
    for suffix in (".jsonl", ".csv", ".tsv", ".xlsx", ".parquet", ".txt"):
        write_table(f"stories{suffix}", stories)
    Path("stories.json").write_text(json.dumps(stories), encoding="utf-8")
    lacking = [{**story, "type": story["type"] if n % 4 else ""} for n, story in enumerate(stories)]
    write_table("kinds.jsonl", lacking)
    write_table("marked.csv", [{"id": "s0", "value": "A", "accepted": "x"}, {"id": "s4", "value": "B", "accepted": ""}])
    decided = [
        {"id_a": "s0", "id_b": "s1", "decision": "same", "reader": "anna"},
        {"id_a": "s0", "id_b": "s2", "decision": "different", "reader": "anna"},
        {"id_a": "s1", "id_b": "s0", "decision": "unsure", "reader": "ben"},
    ]
    for suffix in (".csv", ".jsonl"):
        write_table(f"decided{suffix}", decided)
    Path("queries.csv").write_text(f'id,text\nq1,"{texts[0]}"\nq2,"{texts[1]}"\n', encoding="utf-8")
    for suffix in (".jsonl", ".csv", ".tsv", ".parquet"):
        write_table(f"triples{suffix}", rows)
    write_table("cells.jsonl", [{**row, "cell": "ab"[number % 2]} for number, row in enumerate(rows)])
    questions = [
        {"anchor_text": row["anchor_text"], "choices": [row["text_a"], row["text_b"]], "answer": 0} for row in rows
    ]
    write_table("questions.jsonl", questions)
    write_table("labels.jsonl", [{"text_a_is_closer": row["text_a_is_closer"]} for row in rows])
    write_table("answers.csv", [{"text_a_is_closer": not row["text_a_is_closer"]} for row in rows])
    Path("qrels.tsv").write_text("query-id\tcorpus-id\tscore\ns0\ts1\t1\ns2\ts3\t2\n", encoding="utf-8")
    Path("query_judgments.tsv").write_text("q1\ts1\t1\nq2\ts3\t1\n", encoding="utf-8")
    Path("qrels.trec").write_text("s0 0 s1 1\ns2 0 s3 2\n", encoding="utf-8")
    vectors = np.random.default_rng(1).normal(size=(len(rows) * 3, 8)).astype(np.float32)
    np.save("vectors.npy", vectors)
    columns = ("anchor_text", "text_a", "text_b")
    write_table("vector_stories.jsonl", [{"text": row[name]} for row in rows for name in columns])
    Path("settings.yaml").write_text("plain: [1, 0, 0, 0]\nequal: [1, 1, 1, 1]\n", encoding="utf-8")
    Path("overlay.yaml").write_text("trainer:\n  max_epochs: 1\n  max_steps: 2\n", encoding="utf-8")
    space = "model.init_args.optimization.learning_rate: {low: 1.0e-5, high: 1.0e-3, log: true}\n"
    Path("space.yaml").write_text(space, encoding="utf-8")
    Path("prompt.txt").write_text("Anchor: {anchor_text}\nA: {text_a}\nB: {text_b}\n", encoding="utf-8")
    Path("config.yaml").write_text(CONFIG, encoding="utf-8")
    Path("tales").mkdir()
    for number, text in enumerate(texts[:4]):
        Path(f"tales/t{number}.txt").write_text(text, encoding="utf-8")
    Path("tales/table.csv").write_text("file_name,title\nt0.txt,First\nt1.txt,Second\n", encoding="utf-8")


def _write_task() -> None:
    """Lay files out as the shared task's repository does."""
    for target, source in (
        ("dev/dev_track_a.jsonl", "triples.jsonl"),
        ("sample/sample_track_a.jsonl", "world/train.jsonl"),
        ("synthetic/data_for_classification.jsonl", "world/train.jsonl"),
        ("test/test_track_a.jsonl", "triples.jsonl"),
        ("test/labels/test_track_a.jsonl", "labels.jsonl"),
        ("test/labels/test_track_b.jsonl", "triples.jsonl"),
    ):
        path = Path("task", target)
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, path)


def _write_documents() -> None:
    documents = helper("documents")
    paragraphs = ("A king fell ill.", "His daughter found the water of life.", "He was well again.")
    documents.write_docx(Path("story.docx"), "The Water of Life", *paragraphs)
    documents.write_epub(Path("story.epub"), "The Water of Life", *paragraphs)
    documents.write_pdf(Path("story.pdf"), *paragraphs)
    Path("story.md").write_text("# The Water of Life\n\n" + "\n".join(paragraphs), encoding="utf-8")


CONFIG = """\
model:
  class_path: MultipleNegativesRanking
  init_args:
    encoder: {model: model, dropout: 0.0}
    optimization: {learning_rate: 0.001, warmup: 0.1}
    scale: 20.0
    candidates: triplets
data:
  class_path: FileData
  init_args:
    train: world/train.jsonl
    validation: world/validation.jsonl
    test: world/test.jsonl
    loading: {batch_size: 4}
trainer:
  accelerator: cpu
  max_epochs: 1
  max_steps: 2
  enable_progress_bar: false
  logger:
    class_path: RunLogger
    init_args: {save_dir: ., name: run, version: ''}
"""
FIT = "fit --config config.yaml"
HEAD = (
    "fit --model Projection --model.encoder.model model --data FileData --data.train world/train.jsonl "
    "--data.validation world/validation.jsonl --trainer.max_steps 2 --trainer.accelerator cpu "
    "--trainer.logger RunLogger --trainer.logger.save_dir . --trainer.logger.version 0"
)
MAKERS = (
    "data storyworld --out world --train 8 --validation 6 --test 6 --negatives-per-aspect 1",
    FIT,
    "submit --model model --track-a triples.jsonl --track-b stories.jsonl --out submission.zip",
    "index stories.jsonl --model model --out index",
    "embed stories.jsonl --model model --out parts --part-rows 5",
    "embed stories.jsonl --model model --out known.jsonl",
    "compare triples.jsonl --models model --baselines jaccard --out comparison",
    "data pseudonymize world/validation_stories.jsonl --names world/validation_views.jsonl --map names.jsonl "
    "--out pseudonyms.jsonl",
    HEAD,
)

# Command lines -------------------------------------------------------------------------------------------------------

MODEL = "--model model"
VIEWS = "--views world/validation_views.jsonl --fusion equal"
CACHE = ("runs/embeddings",)
LLM = "--llm-model tiny --concurrency 2 --retries 1 --timeout 5"


def jobs(url: str) -> list[Job]:
    """List the jobs.

    Args:
        url: base URL of the language model's server.
    """
    llm = f"{LLM} --base-url {url}"
    lines = [
        *(
            f"embed stories{suffix} {MODEL} --out e{end}"
            for suffix, end in zip(STORY_SUFFIXES, EMBEDDING_ENDS, strict=True)
        ),
        *(f"embed {name} {MODEL} --out e.jsonl" for name in ("story.docx", "story.epub", "story.pdf", "story.md")),
        f"embed tales {MODEL} --out e.csv",
        f"embed stories.txt {MODEL} --split lines --out e.xlsx",
        f"embed stories.jsonl {MODEL} --out parts --part-rows 5",
        f"embed stories.csv {MODEL} --out new_parts --part-rows 4 --format npy",
        f"embed world/validation_stories.jsonl {MODEL} {VIEWS} --out e.npy",
        f"embed stories.jsonl {MODEL} --postprocess center,truncate:8 --fit-on world/train.jsonl --out e.npy",
        "embed stories.jsonl --model run --out e.npy",
        "embed stories.jsonl --model weights.ckpt --out e.npy --max-length 32 --long truncate",
        *(f"evaluate triples{suffix} {MODEL} --json" for suffix in (".jsonl", ".csv", ".tsv", ".parquet")),
        "evaluate triples.jsonl --baseline jaccard --labels labels.jsonl --out ev",
        "evaluate triples.csv --baseline tfidf --out ev",
        f"retrieval stories.jsonl --qrels qrels.tsv {MODEL} --out ev",
        "retrieval stories.csv --qrels qrels.trec --baseline bm25",
        "retrieval index --qrels query_judgments.tsv --queries queries.csv --model model --json",
        f"retrieval stories.jsonl --same type --control title {MODEL} --measure passages,csls --json",
        "retrieval index --same type --measure fused,lexical --out ev",
        f"evaluate triples.jsonl {MODEL} --scorer meanmax",
        f"evaluate triples.jsonl {MODEL} --scorer passages",
        f"evaluate world/validation.jsonl {MODEL} {VIEWS}",
        "evaluate world/validation.jsonl --model run",
        "data check world/train.jsonl world/validation.jsonl world/test.jsonl --out cd --threshold 0.5",
        f"data check triples.jsonl stories.csv {MODEL}",
        f"explain s0 s1 s2 --stories stories.jsonl {MODEL}",
        "explain s0 s1 --stories index --model model --out x.html",
        f"explain story.md story.docx {MODEL} --check --out x.html",
        "export run --out exported",
        "export weights.ckpt --out exported",
        "export model --postprocess center --fit-on stories.jsonl --out exported",
        "average run,weights.ckpt --out averaged --trained-share 0.5",
        "profile model --split test --sets cells.jsonl --choices questions.jsonl --out prof",
        f"submit {MODEL} --track-a triples.jsonl --track-b stories.csv --out s.zip",
        "submit --answers answers.csv --track-a triples.jsonl --out s.zip",
        "submit --check submission.zip --track-a triples.jsonl --track-b stories.jsonl",
        "fuse world/validation.jsonl --models model --views world/validation_views.jsonl "
        "--settings settings.yaml --out fused",
        "data views world/validation_views.jsonl world/validation_stories.jsonl",
        "data views world/validation_views.jsonl world/validation.jsonl --json",
        "data sample tales_out",
        "data storyworld --out w2 --train 4 --validation 4 --test 4",
        f"data mine triples.jsonl {MODEL} --out mined.jsonl --per-example 2",
        "data pseudonymize world/validation_stories.jsonl --names world/validation_views.jsonl --map m.jsonl "
        "--out p.csv",
        "data pseudonymize pseudonyms.jsonl --restore names.jsonl --out restored.jsonl",
        f"index stories.jsonl {MODEL} --out new_index",
        "index stories.csv --model model --out index",
        "search index --like s1 --k 3 --model model",
        "search index --like story.md --out hits.html",
        "search index king --out hits.csv",
        f"map stories.jsonl {MODEL} --out m.html --triples triples.jsonl --group type",
        "map index --out m.html --k 2",
        f"pairs stories.parquet {MODEL} --out p.csv",
        "pairs index --out p.graphml --threshold 0.5",
        f"check-pairs stories.jsonl {MODEL} --decisions decided.csv --out c.csv --groups g.csv",
        "check-pairs index --decisions decided.jsonl,decided.csv --limit 3",
        f"catalog kinds.jsonl --column type {MODEL} --out c.csv --accepted marked.csv --filled f.csv",
        "catalog index --column type --k 3 --json",
        f"data diversity stories.xlsx {MODEL} --json",
        "data diversity index --cosine 0.8 --jaccard 0.4",
        f"judge triples.jsonl {MODEL} {llm} --max-tokens 64 --out judged.jsonl",
        f"judge triples.csv {MODEL} {llm} --max-tokens 64 --prompt prompt.txt --swap --out judged.zip",
        f"generate views stories.jsonl {llm} --max-tokens 64 --out g.jsonl",
        f"generate negatives world/train.jsonl {llm} --max-tokens 64 --out g.jsonl",
    ]
    cached = [
        "compare triples.jsonl --models model,meanmax:model --baselines all --by overlap,length --out compared",
        "compare triples.jsonl --models model,run --answers answers.csv,submission.zip",
        "compare triples.jsonl --answers vectors.npy,answers.csv --stories vector_stories.jsonl",
        "cache ls runs/embeddings --json",
        "cache rm runs/embeddings --yes",
    ]
    slow = [
        "report run model --triples triples.jsonl --out r.html --projection pca",
        f"{FIT} --config overlay.yaml",
        f"{FIT} --trainer.default_root_dir fits --trainer.logger.init_args.version 7",
        f"{FIT} --ckpt_path run/checkpoints/last.ckpt --trainer.max_steps 4",
        HEAD,
        f"{HEAD} --model.embeddings.known known.jsonl",
        "validate --config config.yaml --ckpt_path weights.ckpt",
        "test --config config.yaml --ckpt_path run/checkpoints/last.ckpt",
        "predict --config config.yaml --ckpt_path weights.ckpt --data.init_args.predict triples.jsonl",
        "crossval --config config.yaml --out cv --folds 2",
        "tune --config config.yaml --space space.yaml --trials 1 --folds 2 --out tuned",
        "ablate --config config.yaml --ablations overlay.yaml --out ablated",
        "reproduce --list",
        "reproduce comhis --table 1 --data task --backbone model --out rep --trainer.max_steps 1",
    ]
    return [
        *(Job(tuple(line.split())) for line in lines),
        *(Job(tuple(line.split()), state=CACHE) for line in cached),
        *(Job(tuple(line.split()), SLOW, CACHE) for line in slow),
    ]


STORY_SUFFIXES = (".jsonl", ".csv", ".tsv", ".json", ".xlsx", ".parquet", ".txt")
EMBEDDING_ENDS = (".npy", ".jsonl", ".csv", ".tsv", ".parquet", ".xlsx", ".npy")
