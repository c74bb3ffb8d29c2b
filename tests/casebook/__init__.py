"""Does the gateway hold what the case files say, over real sockets and pipes?

`python -m tests.casebook FILE.jsonl ...` runs them; README.md says how a file is read.
"""
