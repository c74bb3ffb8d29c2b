"""Which words of a provider's inside must never reach a client?

Lives here: the made-up hosts, account and key that the failing providers put into every body and
head they send, so that a leak shows. Does not live here: who sends them when (faults).
"""

_DIGITS = "0123456789"

HOST, QUOTA_HOST, ORG = "db-3.us-east-1.internal", "quota-svc-7.internal", "org-4417"
# Put together here, so that no scanner of sources takes the made-up key for a real one.
KEY = "-".join(("sk", "live", _DIGITS + "abcdef" + _DIGITS))
LEAKS = (HOST, QUOTA_HOST, ORG, KEY)

HEADERS = (
    (b"x-upstream-host", HOST.encode()),
    (b"x-served-by", QUOTA_HOST.encode()),
    (b"openai-organization", ORG.encode()),
    (b"x-debug-key", KEY.encode()),
)
"""They come with every answer, good or bad, as real providers send such headers with both."""

HTML = f"<html><body><h1>Bad gateway</h1>{HOST} did not answer {QUOTA_HOST}</body></html>".encode()

__all__ = ["HEADERS", "HOST", "HTML", "KEY", "LEAKS", "ORG", "QUOTA_HOST"]
