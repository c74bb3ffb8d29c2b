"""Which process is this, when the package is run as a program?

A worker: its parent starts it so (starting).
"""

import sys

from tidegate.gateway.workers.worker import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
