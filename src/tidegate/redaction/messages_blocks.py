"""Which content blocks of a streamed Anthropic message are open, and does a signature still fit?

Lives here: the blocks by index, those that the client does not see, and whether the thinking that
left is the thinking that came. Does not live here: what is masked (open_texts), what an event
means (messages_stream).
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from tidegate.redaction.messages_fields import is_thought
from tidegate.redaction.spans import UpstreamAtFault

_MAX_BLOCKS = 4096


@dataclass(slots=True)
class Block:
    """One open content block. `index` is the upstream's, `number` the client's."""

    index: int
    number: int
    is_thought: bool
    is_hidden: bool
    is_changed: bool = False
    _waiting: str = field(default="", repr=False)

    def saw(self, came: str, left: str) -> None:
        """`came` went in, and then `left` came out. Keeps what is held, and only of thinking."""
        if self.is_thought and not self.is_changed:
            waiting = self._waiting + came
            self.is_changed = not waiting.startswith(left)
            self._waiting = "" if self.is_changed else waiting[len(left) :]

    def ended(self) -> None:
        """Nothing more comes out."""
        self.is_changed = self.is_changed or bool(self._waiting)


class Blocks:
    """The blocks of one message. Raises UpstreamAtFault for an index that says nothing."""

    def __init__(self, leaves_out: Callable[[object], bool]) -> None:
        self.open: dict[int, Block] = {}
        self._leaves_out = leaves_out
        self._begun: set[int] = set()
        self._left_out = 0

    def begin(self, event: dict[str, object]) -> Block:
        """The block that `event` starts."""
        index, content = _index(event), event.get("content_block")
        if index in self._begun or len(self._begun) >= _MAX_BLOCKS:
            raise UpstreamAtFault("a content block starts twice, or there are too many")
        self._begun.add(index)
        is_hidden = self._leaves_out(content)
        block = Block(index, index - self._left_out, is_thought(content), is_hidden)
        self._left_out += is_hidden
        self.open[index] = block
        return block

    def of(self, event: dict[str, object]) -> Block:
        """The block that `event` is about."""
        block = self.open.get(_index(event))
        if block is None:
            raise UpstreamAtFault("an event of a content block that is not open")
        return block

    def end(self, block: Block) -> None:
        """The block has stopped."""
        del self.open[block.index]


def _index(event: dict[str, object]) -> int:
    index = event.get("index")
    if isinstance(index, bool) or not isinstance(index, int) or index < 0:
        raise UpstreamAtFault("the index of a content block is not a number from 0")
    return index
