"""How long until the gateway answers, and what does it weigh at idle?"""

import http.client
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
    """Print start-up times of the gateway and of a bare event loop's imports, and the memory."""
    ready, answered, bare, memory = [], [], [], []
    for _ in range(ROUNDS):
        begin = perf_counter()
        with gateway(CONFIG) as process:
            ready.append(process.started_in_s * 1e3)
            _first_answer(process.port)
            answered.append((perf_counter() - begin) * 1e3)
            memory.append(process.resident_mb())
        begin = perf_counter()
        subprocess.run([sys.executable, "-c", "import asyncio"], check=True)
        bare.append((perf_counter() - begin) * 1e3)
    print(f"start-up, median of {ROUNDS}, {cores()}")  # noqa: T201 - a report
    print(paired("says that it is ready", ready, bare))  # noqa: T201 - a report
    print(paired("first answer", answered, bare))  # noqa: T201 - a report
    print(f"resident memory at idle      {median(memory):9.1f} MB")  # noqa: T201 - a report


def _first_answer(port: int) -> None:
    """Any answer will do: nobody listens behind this gateway."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/")
    connection.getresponse().read()
    connection.close()


if __name__ == "__main__":
    main()
