"""What has an answer cost so far?

Lives here: the sum of what the provider reports and what we count where it does not. Does not live
here: where the reports stand (providers), what a token costs (quote).
"""

from dataclasses import dataclass, field

from tidegate.limits.estimate import TextMeter
from tidegate.providers.base import Usage


@dataclass(slots=True)
class Spent:
    """What the answer cost: the upstream's own numbers, and a count of the text beyond them."""

    usage: Usage | None = None
    meter: TextMeter = field(default_factory=TextMeter)

    @property
    def prompt(self) -> int | None:
        """Tokens of the prompt; None if the upstream did not say."""
        return self.usage.prompt if self.usage else None

    @property
    def cached(self) -> int:
        """Tokens of the prompt that the upstream had read before."""
        return self.usage.cached if self.usage else 0

    @property
    def counted(self) -> bool:
        """Whether a part of the answer is our own count, for want of the upstream's."""
        return self.usage is None or self.meter.tokens > 0

    @property
    def undivided(self) -> int:
        """Tokens that the upstream reported as one figure for prompt and answer."""
        return self.usage.undivided if self.usage else 0

    @property
    def output_tokens(self) -> int:
        """Tokens of the answer so far, with all that is undivided."""
        reported = self.usage.completion + self.usage.undivided if self.usage else 0
        return reported + self.meter.tokens

    def saw(self, text: str, usage: Usage | None) -> None:
        """One event, or a whole answer: its text, and what the upstream has counted so far."""
        if text:
            self.meter.add(text)
        if usage is not None:
            self.usage = usage if self.usage is None else _latest(self.usage, usage)
            if usage.completion or usage.undivided:
                # Its number holds the text so far. A report that comes early, with nothing or
                # one token in it, must not make free what follows for who leaves in between.
                self.meter = TextMeter()


def _latest(before: Usage, after: Usage) -> Usage:
    """What two reports of one answer come to: what was used does not become less."""
    prompt = before.prompt if after.prompt is None else after.prompt
    completion = max(before.completion, after.completion)
    total = max(before.total, after.total)
    if prompt is not None:
        completion = max(completion, total - prompt)
    return Usage(prompt, completion, total, max(before.cached, after.cached))


__all__ = ["Spent"]
