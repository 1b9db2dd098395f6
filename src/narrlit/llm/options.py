"""Options of a language model, and of the texts that it generates."""

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from narrlit.errors import OptionError
from narrlit.files import Output
from narrlit.prompts import Prompt, load_prompt
from narrlit.servers import Endpoint, SettingNames


@dataclass(frozen=True)
class GenerationOptions:
    """Texts to generate and texts to accept.

    Attributes:
        attempts: maximum number of attempts at each reply, until one passes all checks.
        candidates: number of negatives for each aspect (default 3); not for views.
        prompts: folder with your own prompts (negatives_theme.txt, negatives_action.txt, negatives_outcome.txt,
            views.txt), used instead of the package's.
        length_ratio: maximum ratio of lengths of a negative and its anchor, or of the views and their story.
        allow_names: accept negatives that contain proper names of their anchor; for languages in which names are not
            recognized well.
    """

    attempts: int = 4
    candidates: int | None = None
    prompts: str | None = None
    length_ratio: float = 2.0
    allow_names: bool = False

    def __post_init__(self) -> None:
        for name, value in (("attempts", self.attempts), ("candidates", self.candidates)):
            if value is not None and value < 1:
                raise OptionError("at_least", option=name, found=value, least=1)
        if not self.length_ratio > 1:
            raise OptionError("above_one", length_ratio=self.length_ratio)
        if self.prompts is not None and not Path(self.prompts).is_dir():
            raise OptionError("no_such_folder", option="prompts", path=self.prompts)

    def prompt(self, name: str) -> Prompt:
        """Load the user's prompt with this name or, if there is none, the package's."""
        if self.prompts is None:
            return load_prompt(name)
        path = Path(self.prompts) / f"{name}.txt"
        return load_prompt(name, str(path) if path.exists() else None)


NAMES = SettingNames(
    *("base_url", "llm_model", "api_key_env", "concurrency", "retries", "timeout"),
    too_long="completion_refused",
)


@dataclass(frozen=True)
class LLMOptions:
    """Language model, and how requests are sent to it.

    Attributes:
        base_url: URL of the server, such as http://localhost:8000/v1; default: environment variable OPENAI_BASE_URL.
        llm_model: name of the model on the server; default: environment variable NARRLIT_LLM_MODEL.
        api_key_env: name of the environment variable that holds the API key.
        temperature: sampling temperature, 0 to 2; default: 0.8 for negatives, 0.3 for views, 0 for judge.
        max_tokens: maximum number of tokens in a reply; default: 1200 for negatives, 2000 for views, 64 for judge.
        seed: seed of the first attempt; each further attempt adds 1.
        concurrency: number of concurrent requests.
        retries: number of times that a request is repeated if the server is busy, fails or can't be reached.
        timeout: maximum time for an answer in seconds, from the first byte sent to the last byte received.
        batch: send requests as files through OpenAI's Batch API (cheaper, takes up to a day).
        answer_cache: SQLite file of all requests and answers, from which an interrupted job resumes; default: next to
            the output.
    """

    base_url: str | None = None
    llm_model: str | None = None
    api_key_env: str = "OPENAI_API_KEY"
    temperature: float | None = None
    max_tokens: int | None = None
    seed: int = 42
    concurrency: int = 8
    retries: int = 5
    timeout: float = 120
    batch: bool = False
    answer_cache: Annotated[str | None, Output(continued=True)] = None

    def __post_init__(self) -> None:
        NAMES.check(self.api_key_env, self.concurrency, self.retries, self.timeout)
        if self.max_tokens is not None and self.max_tokens < 1:
            raise OptionError("at_least", option="max_tokens", found=self.max_tokens, least=1)
        if self.temperature is not None and not 0 <= self.temperature <= 2:
            raise OptionError("temperature", temperature=self.temperature)

    def endpoint(self) -> Endpoint:
        """Return the server and model, from the options or the environment."""
        url = (self.base_url or os.environ.get("OPENAI_BASE_URL", "")).strip()
        model = (self.llm_model or os.environ.get("NARRLIT_LLM_MODEL", "")).strip()
        if not url:
            raise OptionError("no_llm_url")
        if not model:
            raise OptionError("no_llm_model")
        key = self.api_key_env
        return Endpoint(url, model, NAMES, key_variable=key, max_retries=self.retries, timeout=self.timeout)

    def record(self) -> dict[str, object]:
        """Return the options as plain data for a report, with the URL and model in use, without the API key."""
        endpoint = self.endpoint()
        return {**asdict(self), "base_url": endpoint.url, "llm_model": endpoint.model}
