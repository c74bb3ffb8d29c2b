"""How long until the gateway answers, and what does it weigh at idle?"""

import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.gateway import cores, gateway, paired

CONFIG = """
server: { admin: { port: 0 } }
identity: { anonymous: { principal: guest, tenant: demo, roles: [guest] } }
providers: { p: { base_url: "http://127.0.0.1:9/v1" } }
store: { url: "memory:" }
"""
ROUNDS = 7


def main() -> None:
    """Print start-up times of the gateway and of an empty process, and the memory."""
    starts, empty, memory = [], [], []
    for _ in range(ROUNDS):
        with gateway(CONFIG) as process:
            starts.append(process.started_in_s * 1e3)
            memory.append(process.resident_mb())
        begin = perf_counter()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        empty.append((perf_counter() - begin) * 1e3)
    print(f"start-up, median of {ROUNDS}, {cores()}")  # noqa: T201 - a report
    print(paired("ready to answer", starts, empty))  # noqa: T201 - a report
    print(f"resident memory at idle      {median(memory):9.1f} MB")  # noqa: T201 - a report


if __name__ == "__main__":
    main()
