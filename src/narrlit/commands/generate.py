"""narrlit generate: negatives of training rows, or views of stories, by a language model."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from narrlit.console import say
from narrlit.data.readers import file_digest, read_examples, read_texts
from narrlit.data.writers import write_examples, write_rows
from narrlit.errors import OptionError
from narrlit.files import atomic_path, check_apart, check_writable
from narrlit.llm.generation import GenerationOptions
from narrlit.llm.options import LLMOptions
from narrlit.llm.validation import ValidationOptions

if TYPE_CHECKING:
    from narrlit.llm.asking import Asker
    from narrlit.llm.generation import Account
    from narrlit.prompts import Prompt

REPORT, LOG = ".report.json", ".log.jsonl"
"""What is put behind the output's name."""

TOLD = 5


def generate(
    action: Literal["negatives", "views"],
    file: str,
    *,
    out: str,
    write: GenerationOptions,
    check: ValidationOptions,
    ask: LLMOptions,
    strict: bool = False,
) -> int:
    """Let a language model write negatives for training rows, or views of stories.

    A reply that can't be used is asked for again, and counted by reason: the table is printed, and kept in
    OUT.report.json. All requests and replies stand in OUT.log.jsonl, from which the same command goes on after an
    interruption. The exit code is 1 where something could not be made; what was made is written all the same.

    Args:
        action: negatives: stories like the anchor in theme, structure or outcome alone, behind each row's own;
            views: theme, plot events and outcome of each different story.
        file: labelled triples or training rows for negatives; stories, triples or training rows for views.
        out: file to write, JSON Lines (.jsonl).
        write: what is asked.
        check: what is refused.
        ask: the language model.
        strict: refuse the first row that can't be used, instead of dropping and counting it.
    """
    target = Path(out)
    log = Path(ask.log or target.with_name(target.name + LOG))
    _check(action, target, write, check)
    check_apart({"--out": target, "the report": target.with_name(target.name + REPORT), "--log": log}, [file])
    from narrlit.llm.asking import Asker

    asker = Asker(ask, log)
    work = _negatives if action == "negatives" else _views
    account, prompts = work(file, strict, asker, (write, check, ask.seed), target)
    settings = {"write": asdict(write), "check": asdict(check), "ask": ask.told()}
    report = {"action": action, "file": file, "sha256": file_digest(file), **settings}
    report |= {"prompts": {prompt.name: prompt.digest for prompt in prompts.values()}}
    report |= {**account.as_dict(), "usage": asker.usage.as_dict()}
    _write_report(target, report)
    _tell(account, list(prompts), target)
    for line in asker.usage.lines():
        say(line)
    return int(account.whole < account.items)


def _check(action: str, target: Path, write: GenerationOptions, check: ValidationOptions) -> None:
    if target.suffix != ".jsonl":
        raise OptionError(f"--out {target}: name a file that ends in .jsonl")
    for name, value in {"--candidates": write.candidates, "--allow-names": check.allow_names}.items():
        if value and action == "views":
            raise OptionError(f"{name} is an option of negatives and has no use with views: leave it out")
    for ending in ("", REPORT):
        check_writable(target.with_name(target.name + ending))


Settings = tuple[GenerationOptions, ValidationOptions, int | None]
Done = tuple["Account", Mapping[str, "Prompt"]]


def _negatives(file: str, strict: bool, asker: "Asker", settings: Settings, target: Path) -> Done:
    from narrlit.llm.negatives import NegativeWriter, generate_negatives

    writer = NegativeWriter(*settings)
    reading = read_examples(file, strict=strict)
    say(reading.summary())
    examples, account = generate_negatives(reading.records, asker, writer)
    write_examples(target, examples)
    return account, writer.prompts


def _views(file: str, strict: bool, asker: "Asker", settings: Settings, target: Path) -> Done:
    from narrlit.llm.views import ViewWriter, generate_views

    writer = ViewWriter(*settings)
    reading = read_texts(file, strict=strict)
    say(reading.summary())
    rows, account = generate_views([text for row in reading.records for text in row.texts], asker, writer)
    if rows:
        write_rows(target, rows)
    else:
        say(f"no views: {target} is not written")
    return account, writer.prompts


def _write_report(target: Path, report: dict[str, Any]) -> None:
    with atomic_path(target.with_name(target.name + REPORT)) as temporary:
        temporary.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _tell(account: "Account", kinds: list[str], target: Path) -> None:
    """The table of verdicts on stdout; on stderr what could not be made."""
    rows = account.table(kinds)
    first, *others = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *numbers in rows:
        print("  ".join([f"{name:<{first}}", *(f"{n:>{width}}" for n, width in zip(numbers, others, strict=True))]))
    for shortfall in account.shortfalls[:TOLD]:
        say(shortfall.line)
    if len(account.shortfalls) > TOLD:
        say(f"and {len(account.shortfalls) - TOLD} more, which {target.name}{REPORT} lists")
    say(f"{account.whole} of {account.items} have all that was wanted")
