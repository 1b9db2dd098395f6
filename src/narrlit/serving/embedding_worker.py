"""Process that embeds the stories of an import and adds them to an index.

python -m narrlit.serving.embedding_worker
"""

from pathlib import Path

from narrlit.data.readers import read_stories
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.errors import mistake_behind, printable, reason, system_error
from narrlit.library.index import Index
from narrlit.library.index_writing import IndexingProgress
from narrlit.library.options import index_at
from narrlit.serving.import_models import Amount, EmbedJob, EmbedReport
from narrlit.serving.messages import Message, hide, message_of
from narrlit.serving.worker_process import receive_job, send_line

SLOW_MODULES = ("lancedb", "narrlit.models.registry")
"""Modules whose import takes most of the time until the first story is embedded."""


def main() -> None:
    """Embed the stories of a job, and report progress."""
    job = EmbedJob.model_validate_json(receive_job(*SLOW_MODULES))
    try:
        embed_job(job)
    except Exception as error:  # noqa: BLE001  (reported to the server)
        mistake = mistake_behind(error)
        text = system_error(error) or f"{type(error).__name__}: {reason(error)}"
        problem = Message(message=printable(text, 500)) if mistake is None else message_of(mistake)
        folders = (Path(job.index).parent, Path(job.stories).parent)
        hidden = hide(problem, {f"{folder}/": "" for folder in folders})
        send_line(EmbedReport(problem=hidden).model_dump_json())


def embed_job(job: EmbedJob) -> None:
    """Add stories to a new index, or to one with its own model."""
    stories = read_stories(job.stories)
    if index_at(job.index):
        loading = job.loading
        index = Index(job.index, device=loading.device, trust_remote_code=loading.trust_remote_code)
        index.upsert(stories, on_progress=report_progress)
    else:
        encoder = StoryEncoder(job.model, loading=job.loading)
        Index.create(job.index, stories, encoder, on_progress=report_progress)


def report_progress(progress: IndexingProgress) -> None:
    """Report what is embedded."""
    done = Amount(stories=progress.stories, words=progress.words)
    send_line(EmbedReport(done=done, latest=progress.latest).model_dump_json())


if __name__ == "__main__":
    main()
