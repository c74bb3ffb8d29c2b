"""Which tool does `tool_under_test` describe, as a module that can be served?

Lives here: from words and statements to the source of a ToolServer that has the demo's tools
and the one under test. Does not live here: starting it (stdio).
"""

import re
import textwrap
from collections.abc import Mapping, Sequence

_MODULE = '''
import ctypes, logging, os, subprocess, sys, time
from tidegate.demo.support import SupportStore, support_tools
from tidegate.tools import StrictInput, ToolServer, ToolFailure, strict_tool


class Nothing(StrictInput):
    """No arguments."""

{tools}
server = ToolServer([*support_tools(SupportStore()), {names}], name="casebook")
'''
_TOOL = '''
@strict_tool
async def {name}(call: Nothing) -> str:
    """The tool under test."""
{body}
'''
# Words that stand for statements; what compiles as Python is taken as it is.
_PHRASES: tuple[tuple[str, str], ...] = (
    (
        r"ctypes (libc )?printf ?(\+|and) ?fflush",
        'libc = ctypes.CDLL(None)\nlibc.printf(b"from C\\n")\nlibc.fflush(None)',
    ),
    (r"ctypes (libc )?puts", 'ctypes.CDLL(None).puts(b"from C")'),
    (
        r".*(child|process).*reads (its )?stdin.*",
        'seen = subprocess.run(["cat"], stdout=subprocess.PIPE, timeout=5).stdout\n'
        'return f"the child saw {len(seen)} bytes"',
    ),
    (r".*(raises|throws) (an? )?(?P<error>[A-Z]\w+).*", 'raise {error}("password=hunter2")'),
    (r".*(calls )?sys\.exit.*", "sys.exit(3)"),
    (r".*(sleeps|takes|runs|blocks)( for)? (?P<seconds>[0-9.]+) ?s.*", "time.sleep({seconds})"),
    (r".*returns (?P<chars>\d+) characters.*", 'return "r" * {chars}'),
    (r".*prints? (?P<text>\"[^\"]*\").*", "print({text})"),
    (r".*(os\.system|shell).*echo (?P<word>\w+).*", 'os.system("echo {word}")'),
)


class CannotBuild(ValueError):
    """Words that describe no tool this module can build."""


def body(words: str) -> str:
    """The statements of the tool; raises CannotBuild."""
    told = words.split("does:", 1)[-1] if "does:" in words else words
    whole = _statement(told.strip()) if "does:" not in words else None
    if whole is not None:
        return whole
    found = [_statement(part.strip()) for part in _parts(told)]
    if not found or None in found:
        raise CannotBuild(words)
    return "\n".join(part for part in found if part is not None)


def _parts(text: str) -> list[str]:
    parts, depth, quote, at = [""], 0, "", 0
    while at < len(text):
        character = text[at]
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        else:
            depth += (character in "([{") - (character in ")]}")
        if character == ";" and not quote and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
        at += 1
    return [part for part in parts if part.strip()]


def _statement(text: str) -> str | None:
    if re.search(r"[(=]", text) and _compiles(text):
        # A logging set-up writes nothing by itself: one line shows where it goes.
        line = '\nlogging.getLogger("casebook").warning("the log line")'
        return text + (line if text.startswith("logging.basicConfig") else "")
    for pattern, code in _PHRASES:
        found = re.fullmatch(pattern, text, re.IGNORECASE | re.DOTALL)
        if found:
            return re.sub(r"\{(\w+)\}", lambda m, found=found: str(found[m[1]]), code, count=9)
    return None


def _compiles(text: str) -> bool:
    try:
        compile(text, "tool", "exec")
    except SyntaxError:
        return False
    return True


def module(tools: Mapping[str, str]) -> str:
    """The source of a module with `server`; `tools` maps names to statements."""
    made = []
    for name, statements in tools.items():
        text = statements if "return " in statements else f"{statements}\nreturn 'done'"
        made.append(_TOOL.format(name=name, body=textwrap.indent(text, "    ")))
    return _MODULE.format(tools="\n".join(made), names=", ".join(tools))


def called_tools(requests: Sequence[Mapping[str, object]]) -> list[str]:
    """Names of tools in tools/call requests, without the demo's own."""
    names = []
    for request in requests:
        params = request.get("params")
        name = params.get("name") if isinstance(params, dict) else None
        if request.get("method") == "tools/call" and isinstance(name, str):
            names.append(name)
    return [n for n in dict.fromkeys(names) if n not in ("get_customer_record", "trigger_refund")]
