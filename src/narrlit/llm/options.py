"""How a language model is reached: the options that every command has which asks one."""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from narrlit.errors import OptionError


@dataclass(frozen=True)
class LLMOptions:
    """How a language model is asked.

    Attributes:
        llm: where the server's interface begins, as http://localhost:8000/v1; else the environment variable
            OPENAI_BASE_URL.
        llm_model: the model's name on the server; else the environment variable NARRLIT_LLM_MODEL.
        api_key: the key; others see it in the list of processes, so a file or the environment is better.
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
        transport: chat asks one by one, batch through files as OpenAI's Batch API has them (slower, cheaper).
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
