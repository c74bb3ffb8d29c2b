"""How can tidegate, and what is built on it, be tested?

Lives here: clients and upstreams that do exactly what a test says, a clock that a test moves, the
contracts that stores and detectors must keep. Nothing of the product imports it.
"""
