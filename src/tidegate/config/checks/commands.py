"""Can the commands of MCP servers on stdio be started where they are to run?

A program that is missing is a warning: it may be installed between the check and the first call.
A directory that is missing is an error: nobody makes one by accident. Does not live here: how a
process is started (gateway.servers.children), workers and keys that exclude each other (shape).
"""

import os
import shutil
from pathlib import Path as FilePath

from tidegate.config.addresses import SECRET_WORD
from tidegate.config.findings import Findings
from tidegate.config.models import Config
from tidegate.config.places import Path, quoted
from tidegate.config.sections.mcp import McpServer


def check_commands(config: Config, findings: Findings) -> None:
    """Look at the program and the directory of each. Costs a few system calls."""
    for name, server in config.mcp.servers.items():
        path: Path = ("mcp", "servers", name)
        if server.command and not findings.touched(path):
            folder = findings.folder / server.cwd if server.cwd is not None else FilePath()
            if folder.is_dir():
                _look_for_the_program(server, folder, path, findings)
                _look_for_secrets(server, path, findings)
            else:
                wrong = _shown(findings, (*path, "cwd"), str(folder), "the directory")
                findings.error(
                    (*path, "cwd"), f"{wrong} does not exist", "create it, or name another one"
                )


def _look_for_the_program(
    server: McpServer, folder: FilePath, path: Path, findings: Findings
) -> None:
    program, own = server.command[0], server.env.get("PATH")
    place = (*path, "command", 0)
    if os.sep in program:
        # As the system does it: from the directory in which the process will be.
        found = os.access(folder / program, os.X_OK) and (folder / program).is_file()
        right = "name a program that can be run; a relative path begins at `cwd`"
    else:
        search = findings.search_path if own is None else own.get_secret_value()
        found = shutil.which(program, path=search) is not None
        right = "install it, give its whole path, or write the PATH it is in under `env`"
    if not found:
        wrong = _shown(findings, place, program, "the program")
        findings.warn(place, f"{wrong} was not found: calls of this server fail", right)


def _look_for_secrets(server: McpServer, path: Path, findings: Findings) -> None:
    for index in range(len(server.command)):
        place: Path = (*path, "command", index)
        if SECRET_WORD.search(findings.references.get(place, "")):
            findings.warn(
                place,
                "every user of the machine can read the arguments of a process",
                "hand the secret over as a variable under `env`",
            )


def _shown(findings: Findings, path: Path, value: str, what: str) -> str:
    # What came by reference is nobody's business but its owner's.
    return what if path in findings.references else f"{what} {quoted(value, limit=200, mark='')}"
