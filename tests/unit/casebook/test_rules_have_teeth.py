"""Does each rule hold for the right observation and fail for a wrong one?"""

import pytest

from tests.casebook.rules.grammar import View
from tests.casebook.rules.library import LIBRARY, parser
from tests.casebook.seen import Mismatch
from tests.unit.casebook import rows_mcp, rows_stdio, rows_stream, rows_web
from tests.unit.casebook.rows_stdio import Row

pytestmark = pytest.mark.full

ROWS: list[Row] = [*rows_stdio.ROWS, *rows_web.ROWS, *rows_stream.ROWS, *rows_mcp.ROWS]


@pytest.mark.parametrize("row", ROWS, ids=[f"{row[0]}: {row[1]}" for row in ROWS])
def test_a_sentence_holds_for_what_it_says_and_fails_for_something_else(row: Row) -> None:
    kind, sentence, right, wrong = row
    node = parser(kind).parse(sentence)
    assert node is not None
    node.judge(View.of(right))
    with pytest.raises(Mismatch):
        node.judge(View.of(wrong))


def test_every_rule_is_shown_to_have_teeth() -> None:
    used = set()
    for kind, sentence, _, _ in ROWS:
        node = parser(kind).parse(sentence)
        used |= {id(rule) for rule in node.rules()} if node is not None else set()
    bare = [f"{rule.name}: {rule.pattern[:60]}" for rule in LIBRARY.rules if id(rule) not in used]
    assert bare == []
