"""How does the demo write on a terminal, and on what is none?

Lives here: plain words, with color only where it was allowed, and the shape of a shell command.
Does not live here: what is shown (scenes.py).
"""

from collections.abc import Callable, Sequence

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "cyan": "36"}


class Stage:
    """Writes pieces of text as they come; `color` allows escape codes, `write` must flush."""

    def __init__(self, write: Callable[[str], object], *, color: bool) -> None:
        self._write = write
        self._color = color

    def paint(self, text: str, *styles: str) -> str:
        """`text` in the named styles, or as it is without color."""
        if not self._color or not text:
            return text
        return f"\033[{';'.join(_CODES[style] for style in styles)}m{text}\033[0m"

    def say(self, text: str = "") -> None:
        """One line."""
        self._write(f"{text}\n")

    def put(self, text: str) -> None:
        """Text without an end of line, shown at once."""
        self._write(text)

    def title(self, number: int, text: str) -> None:
        """The heading of a scene."""
        self.say()
        self.say(self.paint(f"{number}. {text}", "bold"))

    def note(self, text: str) -> None:
        """An explanation, indented."""
        self.say(f"   {self.paint(text, 'dim')}")

    def command(self, lines: Sequence[str]) -> None:
        """A command to copy; further lines are its continuation."""
        body = " \\\n       ".join(lines)
        self.say(f"   {self.paint('$', 'dim')} {self.paint(body, 'cyan')}")


def curl(
    url: str, *, token: str | None = None, body: str | None = None, options: str = "-s"
) -> list[str]:
    """A curl call, one argument group a line."""
    lines = [f"curl {options} {url}"]
    if token is not None:
        lines.append(f"-H 'Authorization: Bearer {token}'")
    if body is not None:
        lines.append("-H 'Content-Type: application/json'")
        lines.append(f"-d '{body}'")
    return lines
