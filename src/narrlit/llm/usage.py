"""What a job asked, what failed, and what it cost."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from narrlit.llm.messages import Reply


@dataclass
class Usage:
    """Counts of one job.

    Tokens and cost are of every reply that the job used, from the log too: they are the same whether it was
    interrupted or not.

    Attributes:
        price_in: price of a million tokens of questions; None: not known.
        price_out: price of a million tokens of answers.
        asked: requests that the server answered.
        from_log: requests that the log answered.
        prompt_tokens: of the questions.
        completion_tokens: of the answers.
        failures: requests without an answer after all tries, by reason.
        retries: tries that failed and were made again, by reason.
    """

    price_in: float | None = None
    price_out: float | None = None
    asked: int = 0
    from_log: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    retries: Counter[str] = field(default_factory=Counter)

    def add(self, reply: Reply, from_log: bool) -> None:
        """Count a reply."""
        self.asked += not from_log
        self.from_log += from_log
        self.prompt_tokens += reply.prompt_tokens
        self.completion_tokens += reply.completion_tokens

    @property
    def cost(self) -> float | None:
        """In the prices' currency; None where no price is given."""
        if self.price_in is None and self.price_out is None:
            return None
        return (self.prompt_tokens * (self.price_in or 0) + self.completion_tokens * (self.price_out or 0)) / 1e6

    def as_dict(self) -> dict[str, Any]:
        """For a report's JSON."""
        return {
            "asked": self.asked,
            "from_log": self.from_log,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "cost": self.cost,
            "failures": dict(self.failures),
            "retries": dict(self.retries),
        }
