"""How much of labeled text is found, and how much of other text is found by mistake?

Run `python -m tests.recall [FOLDER]` (or `make recall`).
"""
