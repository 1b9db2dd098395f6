"""How a language model is reached: the options that every command has which asks one."""

import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from narrlit.endpoints.address import check_variable, checked_key, checked_url, key_in_environment
from narrlit.errors import OptionError

MAY_BE_LEFT_OUT = ("temperature", "top_p", "seed")


@dataclass(frozen=True)
class Server:
    """Where requests go.

    Attributes:
        url: where the interface begins.
        model: the model's name there.
        key: None where none is given; it stands in no message, log or record.
        timeout: seconds to wait for an answer.
    """

    url: str
    model: str
    key: str | None = field(repr=False)
    timeout: float

    @property
    def who(self) -> str:
        """The server and its model, as messages name them."""
        return f"{self.url} ({self.model})"


@dataclass(frozen=True)
class LLMOptions:
    """How a language model is asked.

    Attributes:
        llm: where the server's interface begins, as http://localhost:8000/v1; else the environment variable
            OPENAI_BASE_URL.
        llm_model: the model's name on the server; else the environment variable NARRLIT_LLM_MODEL.
        api_key: the key itself; others see it in the list of processes, so a file or the environment is better.
        api_key_file: a file whose first line is the key.
        api_key_variable: name of the environment variable that holds the key.
        concurrency: requests at a time.
        requests_per_minute: at most; null: no limit.
        tokens_per_minute: of questions and answers together, at most; null: no limit.
        retries: how often a request is sent again when the server is busy, fails or can't be reached.
        timeout: seconds to wait for an answer.
        seed: of the answers, as far as the server heeds it; null: none is sent.
        leave_out: parameters that the model refuses, as temperature,top_p.
        price_in: price of a million tokens of questions, for the cost told.
        price_out: price of a million tokens of answers.
        transport: chat asks one by one; batch sends files, as OpenAI's Batch API has them (slower and cheaper).
        log: file of all requests and replies, from which an interrupted job goes on; null: beside the output.
    """

    llm: str | None = None
    llm_model: str | None = None
    api_key: str | None = field(default=None, repr=False)
    api_key_file: str | None = None
    api_key_variable: str = "OPENAI_API_KEY"
    concurrency: int = 8
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    retries: int = 5
    timeout: float = 120
    seed: int | None = 42
    leave_out: str | None = None
    price_in: float | None = None
    price_out: float | None = None
    transport: Literal["chat", "batch"] = "chat"
    log: str | None = None

    def __post_init__(self) -> None:
        """Check what can be checked without the environment.

        Raises:
            OptionError: naming the option.
        """
        for name, least in (("concurrency", 1), ("requests_per_minute", 1), ("tokens_per_minute", 1), ("retries", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise OptionError(f"--{name} is {value}: a number from {least} is needed")
        for name in ("price_in", "price_out"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < float("inf"):
                raise OptionError(f"--{name} is {value}: a price from 0 is needed")
        if not 0 < self.timeout < float("inf"):
            raise OptionError(f"--timeout is {self.timeout}: a number of seconds above 0 is needed")
        if (self.price_in is None) != (self.price_out is None):
            raise OptionError("--price_in and --price_out give a cost together alone: give both or none")
        limits = (self.concurrency, self.requests_per_minute, self.tokens_per_minute)
        if self.transport == "batch" and limits != (8, None, None):
            raise OptionError(
                "--concurrency, --requests_per_minute and --tokens_per_minute have no use with --transport batch: "
                "leave them out"
            )
        check_variable(self.api_key_variable, "--api_key_variable")
        unknown = [name for name in self.left_out if name not in MAY_BE_LEFT_OUT]
        if unknown:
            raise OptionError(f"--leave_out names {unknown[0]!r}; there are {', '.join(MAY_BE_LEFT_OUT)}")

    @property
    def left_out(self) -> list[str]:
        """The parameters of `leave_out`."""
        return [name.strip() for name in (self.leave_out or "").split(",") if name.strip()]

    def url(self) -> str:
        """Where the interface begins, without a slash at the end.

        Raises:
            OptionError: if it is neither given nor in the environment, or no such URL.
        """
        url = self.llm or os.environ.get("OPENAI_BASE_URL", "").strip()
        if not url:
            raise OptionError(
                "no language model's server: give --llm URL, as http://localhost:8000/v1, or set OPENAI_BASE_URL"
            )
        return checked_url(url, "--api_key_variable")

    def model(self) -> str:
        """The model's name on the server.

        Raises:
            OptionError: if it is neither given nor in the environment.
        """
        model = self.llm_model or os.environ.get("NARRLIT_LLM_MODEL", "").strip()
        if not model:
            raise OptionError(
                "no language model: give --llm_model NAME, as the server has it, or set NARRLIT_LLM_MODEL"
            )
        return model

    def key(self) -> str | None:
        """The key, as given, from the file or from the environment; None where there is none.

        Raises:
            OptionError: if the file can't be read, or the key has characters that no key has; they are not repeated.
        """
        if self.api_key is not None:
            return checked_key(self.api_key, "--api_key")
        if self.api_key_file is None:
            return key_in_environment(self.api_key_variable)
        try:
            lines = Path(self.api_key_file).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            # The value is not repeated: it may be the key itself.
            raise OptionError(
                f"cannot read what --api_key_file names: {getattr(error, 'strerror', 'it is no text')}; name a file "
                "whose first line is the key"
            ) from None
        key = checked_key(lines[0] if lines else "", f"the first line of --api_key_file {self.api_key_file}")
        if key is None:
            raise OptionError(f"the first line of --api_key_file {self.api_key_file} is empty: put the key there")
        return key

    def server(self) -> Server:
        """What the options and the environment say now; the key's file is read, which may be a pipe.

        Raises:
            OptionError: if URL, model or key is missing or none.
        """
        return Server(self.url(), self.model(), self.key(), self.timeout)

    def told(self) -> dict[str, Any]:
        """The options for a record: all but the key, with the URL and the model as they are used."""
        told = {name: value for name, value in asdict(self).items() if name != "api_key"}
        return {**told, "llm": self.url(), "llm_model": self.model()}
