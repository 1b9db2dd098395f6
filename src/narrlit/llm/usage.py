"""What a job asked, what failed, and what it cost."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from narrlit.llm.messages import Reply


@dataclass
class Usage:
    """Counts of one job.

    Tokens and cost are of every reply that the job used, from the log too, each once: they are the same whether the
    job was interrupted or not. What tries without an answer cost is not known.

    Attributes:
        price_in: price of a million tokens of questions; None: not known.
        price_out: price of a million tokens of answers; None: not known.
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

    def add(self, reply: Reply, *, from_log: bool) -> None:
        """Count a reply."""
        self.asked += not from_log
        self.from_log += from_log
        self.prompt_tokens += reply.prompt_tokens
        self.completion_tokens += reply.completion_tokens

    @property
    def cost(self) -> float | None:
        """In the prices' currency; None unless both prices are known."""
        if self.price_in is None or self.price_out is None:
            return None
        return (self.prompt_tokens * self.price_in + self.completion_tokens * self.price_out) / 1e6

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

    def lines(self) -> list[str]:
        """For people: one line, and one for each kind of failure.

        >>> Usage(asked=3, prompt_tokens=1200, completion_tokens=90, retries=Counter({"HTTP 429": 2})).lines()
        ['3 requests answered, 0 from the log; 1,200 tokens in, 90 out', 'HTTP 429: tried again 2 times']
        """
        cost = "" if self.cost is None else f"; cost {self.cost:.4f}"
        first = (
            f"{self.asked:,} requests answered, {self.from_log:,} from the log; "
            f"{self.prompt_tokens:,} tokens in, {self.completion_tokens:,} out{cost}"
        )
        again = [f"{reason}: tried again {count:,} times" for reason, count in sorted(self.retries.items())]
        failed = [f"{reason}: {count:,} requests without an answer" for reason, count in sorted(self.failures.items())]
        return [first, *again, *failed]
