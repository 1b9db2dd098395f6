"""Which batches were sent and not yet collected: kept beside the log, so that none is sent twice."""

from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from uuid import uuid4

from narrlit.files import atomic_path
from narrlit.llm.journal import Journal


@dataclass
class Batch:
    """One batch.

    Attributes:
        name: ours; the service keeps it beside its own.
        keys: of its requests.
        number: the service's; None before it is made there.
    """

    name: str
    keys: list[str]
    number: str | None = None


class BatchRecords:
    """A folder with each batch's file as it was sent, and `batches.jsonl`, which says how far each is.

    Attributes:
        folder: where.
        left: batches that are not collected, by name.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.left: dict[str, Batch] = {}
        self._journal = Journal(folder / "batches.jsonl", self._take)

    def __enter__(self) -> "BatchRecords":
        """Read what is there.

        Raises:
            OptionError: if it can't be opened, or another job has it open.
            DataError: if a line is none of such a file.
        """
        self._journal.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._journal.__exit__(kind, error, traceback)

    def _take(self, line: dict[str, object]) -> None:
        name = str(line["name"])
        if line["step"] == "sending":
            keys = line["keys"]
            if not isinstance(keys, list):
                raise TypeError("keys are a list")
            self.left[name] = Batch(name, [str(key) for key in keys])
        elif line["step"] == "made":
            self.left[name].number = str(line["batch"])
        else:
            self.left.pop(name, None)

    def _write(self, line: dict[str, object]) -> None:
        self._journal.write(line)
        self._take(line)

    def sending(self, requests: dict[str, bytes]) -> Batch:
        """A new batch, about to be sent; its file is written.

        Args:
            requests: a line of the batch's file by its request's key.
        """
        name = uuid4().hex
        with atomic_path(self.file(name)) as path:
            path.write_bytes(b"".join(requests.values()))
        self._write({"step": "sending", "name": name, "keys": list(requests)})
        return self.left[name]

    def made(self, batch: Batch, number: str) -> None:
        """The service made the batch and calls it by this number."""
        self._write({"step": "made", "name": batch.name, "batch": number})

    def done(self, batch: Batch) -> None:
        """All that came of the batch stands in the log, or nothing will."""
        self._write({"step": "done", "name": batch.name})

    def file(self, name: str) -> Path:
        """The batch's file."""
        return self.folder / f"{name}.jsonl"
