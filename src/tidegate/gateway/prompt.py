"""Which bytes of this prompt may a provider see?

Lives here: the order of masking, asking a classifier and noting what was found. Does not live
here: any of the three (masking, classifier, records).
"""

import asyncio

from tidegate.gateway.beside import beside_the_loop
from tidegate.gateway.classifier import Checker
from tidegate.gateway.filters import Body, unread
from tidegate.gateway.masking import CallMasking
from tidegate.records.entries import Trail


async def masked_prompt(
    masking: CallMasking, document: Body, raw: bytes, *, checker: Checker | None, trail: Trail
) -> bytes:
    """The body to send upstream: the client's own bytes unless redaction changed something.

    Raises InvalidRequest, ContentBlocked, RedactionFailed.
    """
    masking.admit(document)
    try:
        prompt = await beside_the_loop(len(raw), masking.prompt, document, raw)
    except asyncio.CancelledError:
        masking.abandon()
        raise
    try:
        if prompt.holes is not None and checker is not None:
            await checker.judge(prompt.holes, prompt.found, "request")
        return await beside_the_loop(len(raw), prompt.body)
    finally:
        trail.counts(
            "redact_request",
            masking.masking.request,
            prompt.found,
            **unread(prompt.found),
            **masking.vault_figures,
        )


__all__ = ["masked_prompt"]
