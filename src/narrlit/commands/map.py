"""narrlit map: a collection as one picture, with its groups, nearest stories and linked passages."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from narrlit.console import counted, say
from narrlit.errors import OptionError, printable
from narrlit.files import Output, atomic_path, check_writable
from narrlit.options import InputOptions, LabelOptions, ModelOptions, StoryOptions

if TYPE_CHECKING:
    from narrlit.encoding.story_encoder import StoryEncoder


def map(  # noqa: PLR0913 (options)
    stories: str,
    *,
    out: Annotated[str, Output("{path}", "{stem}-neighbors.csv", "{stem}-groups.csv", "{stem}.svg")],
    group: str | None = None,
    triples: str | None = None,
    k: int = 10,
    use: ModelOptions,
    read: StoryOptions,
    inputs: InputOptions,
    given: LabelOptions,
) -> None:
    """Draw a collection: up to 300 stories as a dendrogram with a heat map, more in a plane; both with their groups.

    Beside NAME.html it writes NAME-neighbors.csv, NAME-groups.csv and, for an article, NAME.svg.

    Args:
        stories: an index, or stories as `narrlit embed` reads them.
        out: the HTML file.
        group: column whose values are compared with the nearest stories: how many share it, by chance how many.
        triples: labeled triples that the model's accuracy is measured on, for the head of the page.
        k: nearest stories that are listed of each.
        use: the model, where the stories are no index; minilm if none is named.
        read: what it reads of a story.
        inputs: files of stories.
        given: the triples' labels.
    """
    target = Path(out)
    if k < 1:
        raise OptionError(f"--k {k}: at least 1 is needed")
    beside = {name: target.with_name(f"{target.stem}{name}") for name in ("-neighbors.csv", "-groups.csv", ".svg")}
    check_writable(target, ".html", ".htm")
    from narrlit.data.writers import write_table
    from narrlit.explore.agreement import agreement
    from narrlit.explore.collection import load_collection
    from narrlit.explore.map_page import map_page, write_svg
    from narrlit.explore.story_map import link_passages, map_stories

    collection = load_collection(stories, use, read, inputs)
    frame, about = collection.frame, collection.about
    compared = None
    if group is not None:
        if group not in frame.columns[3:]:
            columns = ", ".join(frame.columns[3:]) or "none"
            raise OptionError(f"--group {group}: {stories} has no such column; there are {columns}")
        values = ["" if value is None else printable(value, 60) for value in frame[group]]
        compared = agreement(collection.vectors, group, values, k)
    encoder = collection.encoder
    facts = _facts(about, len(frame), encoder, _accuracy(encoder, triples, given))
    story_map = map_stories(frame, collection.vectors, k)
    sentences, links = None, None
    if story_map.tree is not None and encoder.facts.reads == "text":
        sentences, links = link_passages(encoder, frame["text"].tolist(), story_map.indices)
    page = map_page(story_map, f"Map of {Path(stories).name}", facts, compared, sentences, links)
    with atomic_path(beside[".svg"]) as temporary:
        write_svg(story_map, temporary)
    write_table(beside["-neighbors.csv"], story_map.neighbor_rows())
    write_table(beside["-groups.csv"], story_map.group_rows())
    with atomic_path(target) as temporary:
        temporary.write_text(page, encoding="utf-8")
    print(f"{len(frame):,} stories, {counted(len(story_map.names), 'group')}: {story_map.method}")
    for name, central in zip(story_map.names, story_map.central, strict=True):
        print(f"  {name} ({story_map.labels[central]})")
    if compared is not None:
        print("\n".join(compared.lines()))
        print(f"Closest pairs with different {printable(group, 60)}:")
        for i, j, similarity in compared.surprises:
            print(f"  {similarity:.3f} {story_map.labels[i]} ({values[i]}), {story_map.labels[j]} ({values[j]})")
    say(f"{out}: {len(page.encode()) / 1e6:.1f} MB; beside it {', '.join(path.name for path in beside.values())}")


def _facts(about: dict[str, Any], stories: int, encoder: "StoryEncoder", accuracy: str) -> list[tuple[str, str]]:
    """State model, size, what was read, languages and accuracy, for the head of the page."""
    from narrlit.models.registry import language_warning

    languages = sorted(about["languages"].items(), key=lambda item: -item[1])
    checked = ", ".join(f"{language} {count}" for language, count in languages) or "none recognized"
    warning = language_warning(encoder.facts.vocabulary, about["languages"])
    return [
        ("Model", about["model"]),
        ("Stories", f"{stories:,}"),
        ("Read", f"{100 * about['share_read']:.4g} % of the words"),
        ("Languages", f"{checked} of the stories checked" + (f"; {warning}" if warning else "")),
        ("Accuracy", accuracy),
    ]


def _accuracy(encoder: "StoryEncoder", triples: str | None, given: LabelOptions) -> str:
    """Measure the model's accuracy on labeled triples, or take it from its run's record."""
    from narrlit.experiments.evaluation import SEEN, evaluate
    from narrlit.models.registry import find_record, read_record

    if triples is not None:
        result = evaluate(triples, encoder, labels=given.labels, strict=given.strict, progress=True)
        seen = result.answers.flags.get(SEEN)
        return f"{result.answers.summary} on the triples of {Path(triples).name}" + (f"; {seen}" if seen else "")
    path = find_record(encoder.name)
    best = {} if path is None else read_record(path).get("best") or {}
    if best.get("accuracy") is None:
        return "not measured on judged triples; --triples FILE measures it"
    low, high = best["interval"]
    record = f"{best['accuracy']:.3f} [{low:.3f}, {high:.3f}] on the validation triples of its run"
    return record + "; best of several evaluations there, hence too high"
