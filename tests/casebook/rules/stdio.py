"""Which sentences speak about a conversation over stdio?

Does not live here: the conversation itself (the driver), HTTP.
"""

import json
import re

from tests.casebook.rules import profiles
from tests.casebook.rules.grammar import Rule, View
from tests.casebook.rules.words import NUMBER, RPC_CODE, ids, items, literal, number, seconds
from tests.casebook.seen import WIDEN, Mismatch, Reply, check, equal, same, short

Match = re.Match[str]
STDIO = ("stdio",)


def text_of(reply: Reply) -> str:
    return json.dumps(reply.message, ensure_ascii=False)


def fits(reply: Reply, code: int, view: View) -> bool:
    return profiles.fits(reply.message, code, view.seen.profile)


def _count(view: View, m: Match) -> None:
    wanted = number(m["count"])
    got = view.replies
    check(len(got) == wanted, f"{len(got)} replies: {short([reply.id for reply in got])}")


def _error_replies(view: View, m: Match) -> None:
    code, own_id = int(m["code"]), literal(m["id"])
    found = [r for r in view.replies if same(r.id, own_id) and r.code == code]
    seen = short([r.message for r in view.replies])
    check(
        len(found) == number(m.groupdict().get("count") or "one"),
        f"{len(found)} such replies in {seen}",
    )


def _code(view: View, m: Match) -> None:
    codes = [int(code) for code in re.findall(RPC_CODE, m["codes"])]
    replies = view.replies if view.narrowed else [r for r in view.replies if r.refused]
    check(replies, f"no refusal: {short([r.message for r in view.replies])}")
    for reply in replies:
        check(any(fits(reply, code, view) for code in codes), short(reply.message))
        where = m.groupdict().get("where")
        if where == "id null":
            check(reply.id is None, f"id {short(reply.id)}")
        elif where == "own id":
            check(reply.id is not None, "id null")


def _code_or(view: View, m: Match) -> None:
    """For each reply by itself: one of two codes, each with its own place for the id."""
    for reply in view.replies:
        there = _any_code(reply, m[0], view)
        check(there, short(reply.message))


def _any_code(reply: Reply, text: str, view: View) -> bool:
    for found in re.finditer(rf"({RPC_CODE})(?: (?:\(|with )?(id null|own id)\)?)?", text):
        where = found[2]
        place = where is None or (reply.id is None) == (where == "id null")
        if place and fits(reply, int(found[1]), view):
            return True
    return False


def _code_with_id(view: View, m: Match) -> None:
    wanted = literal(m["id"])
    for reply in view.replies:
        there = fits(reply, int(m["code"]), view) and same(reply.id, wanted)
        check(there, short(reply.message))


def _answered(view: View, m: Match) -> None:
    for wanted in ids(m["ids"]):
        found = view.seen.talk.with_id(wanted)
        check(found, f"no reply to id {short(wanted)}")
        if m["once"]:
            check(len(found) == 1, f"{len(found)} replies to id {short(wanted)}")
        how = m["how"]
        if how and not (("result" in how) and found[0].result is not None):
            codes = [int(code) for code in re.findall(RPC_CODE, how)]
            there = any(fits(found[0], code, view) for code in codes)
            check(there, f"id {short(wanted)}: {short(found[0].message)}")


def _normal_reply(view: View, m: Match) -> None:
    for wanted in ids(m["ids"]):
        found = view.seen.talk.with_id(wanted)
        check(
            len(found) == 1 and found[0].result is not None,
            f"id {wanted}: {short([r.message for r in found])}",
        )


def _answered_within(view: View, m: Match) -> None:
    found = [r for r in view.replies if r.refused and _any_code(r, m["codes"], view)]
    check(found, f"no such error: {short([r.message for r in view.replies])}")
    check(found[0].after_s < seconds(m["bound"]) * WIDEN, f"after {found[0].after_s:.2f} s")


def _running(view: View, m: Match) -> None:
    check(view.seen.talk.running, "the process has ended")


def _no_null_reply(view: View, m: Match) -> None:
    odd = [r.message for r in view.replies if r.id is None]
    check(not odd, f"a reply: {short(odd)}")
    asked = len(view.seen.talk.requests())
    check(len(view.replies) == asked, f"{len(view.replies)} replies to {asked} requests")


def _one_each(view: View, m: Match) -> None:
    for request in view.seen.talk.requests():
        found = view.seen.talk.with_id(request["id"])
        check(len(found) == 1, f"{len(found)} replies to id {short(request['id'])}")


def _real_results(view: View, m: Match) -> None:
    for reply in view.replies:
        check(not reply.refused and reply.result, f"id {short(reply.id)}: {short(reply.message)}")


def _no_reply_is(view: View, m: Match) -> None:
    found = [r.message for r in view.replies if m["words"].lower() in text_of(r).lower()]
    check(not found, short(found))


def _exits(view: View, m: Match) -> None:
    talk = view.seen.talk
    check(talk.exit_code is not None, "it did not end")
    if m["code"]:
        check(talk.exit_code == int(m["code"]), f"exit code {talk.exit_code}")
    if m["bound"]:
        after_s = talk.exit_after_s or 0.0
        check(after_s <= seconds(m["bound"]) * WIDEN, f"ended after {after_s:.1f} s")


def _cpu(view: View, m: Match) -> None:
    used_s = view.seen.talk.cpu_s
    check(used_s is not None, "CPU time was not measured")
    check((used_s or 0.0) < seconds(m["bound"]) * WIDEN, f"{used_s:.2f} s of CPU")


def _pure(view: View, m: Match) -> None:
    check(not view.seen.talk.impure, f"on stdout: {short(view.seen.talk.impure)}")
    check(view.replies or not view.seen.talk.requests(), "stdout is empty")


def _on_stderr(view: View, m: Match) -> None:
    talk = view.seen.talk
    for word in items(m["words"]):
        plain = re.sub(r"^the ", "", word)
        there = re.search(rf"(?<![A-Za-z]){re.escape(plain)}(?![A-Za-z])", talk.stderr)
        check(there, f"{word!r} is not on stderr: {short(talk.stderr)}")


def _empty_stdin(view: View, m: Match) -> None:
    said = [text_of(r) for r in view.replies if "the child saw" in text_of(r)]
    check(said, "the tool did not tell what its child saw")
    check("the child saw 0 bytes" in said[0], short(said[0]))


def _long_result(view: View, m: Match) -> None:
    for wanted in ids(m["ids"]):
        found = view.seen.talk.with_id(wanted)
        check(len(found) == 1, f"{len(found)} replies to id {wanted}")
        content = (found[0].result or {}).get("content") or [{}]
        length = len(content[0].get("text", ""))
        check(length == int(m["count"]), f"{length} characters")


def _ids_identical(view: View, m: Match) -> None:
    sent = sorted(json.dumps(request["id"]) for request in view.seen.talk.requests())
    got = sorted(json.dumps(reply.id) for reply in view.replies)
    equal(got, sent, "ids")


def _array(view: View, m: Match) -> None:
    if len(view.replies) != number(m["count"] or "both"):
        raise Mismatch(f"{len(view.replies)} replies")


def _ids_code(view: View, m: Match) -> None:
    codes = [int(code) for code in re.findall(RPC_CODE, m["codes"])]
    for wanted in ids(m["ids"]):
        found = view.seen.talk.with_id(wanted)
        there = len(found) == 1 and any(fits(found[0], code, view) for code in codes)
        check(there, f"id {short(wanted)}: {short([r.message for r in found])}")


def _no_reply_to(view: View, m: Match) -> None:
    for wanted in ids(m["ids"]):
        found = view.seen.talk.with_id(wanted)
        check(not found, f"id {short(wanted)}: {short([r.message for r in found])}")


def _silence(view: View, m: Match) -> None:
    check(not view.replies, f"replies: {short([r.message for r in view.replies])}")


def _is_error_result(view: View, m: Match) -> None:
    check(view.replies, "no reply")
    for reply in view.replies:
        result = reply.result
        there = isinstance(result, dict) and result.get("isError") is True
        check(there, f"id {short(reply.id)}: {short(reply.message)}")


def _has_result(view: View, m: Match) -> None:
    check(view.replies, "no reply")
    for reply in view.replies:
        check(reply.result is not None and not reply.refused, short(reply.message))


def _stderr_holds(view: View, m: Match) -> None:
    stderr = view.seen.talk.stderr
    for word in items(m["words"]):
        check((word in stderr) == (not m["no"]), f"stderr: {short(stderr[-160:])}")


IDS = r"ids? (?P<ids>(?:-?\d+|\"[^\"]*\")(?:(?:, and |, | and | to )(?:-?\d+|\"[^\"]*\"))*)"
_BOUND = r"(?P<bound>[0-9.]+ ?(?:ms|s|min))"
_PLACED = rf"{RPC_CODE}(?: \((?:id null|own id)\)| with id null)?"
RULES = (
    Rule(
        "error replies",
        rf"(?:exactly )?(?:(?P<count>{NUMBER}) )?repl(?:y|ies) with (?:error )?(?:code "
        rf")?(?P<code>{RPC_CODE}) and id (?P<id>null|-?\d+|\"[^\"]*\")(?: for .+)?",
        _error_replies,
        STDIO,
    ),
    Rule(
        "error replies",
        rf"(?P<code>{RPC_CODE}) with id (?P<id>null)(?: for .+)?",
        _error_replies,
        STDIO,
    ),
    Rule(
        "code with id",
        rf"(?P<code>{RPC_CODE}) with id (?P<id>-?\d+|\"[^\"]*\")",
        _code_with_id,
        STDIO,
    ),
    Rule(
        "code",
        rf"(?:error |answer )?(?P<codes>{_PLACED}(?:(?:,? or |, ){_PLACED})+)",
        _code_or,
        STDIO,
    ),
    Rule(
        "code",
        rf"(?:an? )?(?:error |error reply |code )?(?P<codes>{RPC_CODE})(?: "
        r"\((?P<where>id null|own id)\))?",
        _code,
        STDIO,
    ),
    Rule(
        "error in time",
        rf"an error reply \((?P<codes>.*{RPC_CODE}.*)\), within {_BOUND}",
        _answered_within,
        STDIO,
    ),
    Rule(
        "answered",
        rf"{IDS} (?:is |are )?(?:all )?(?:still )?answered(?P<once> (?:exactly )?once)"
        r"?(?: \((?P<how>.+)\))?",
        _answered,
        STDIO,
    ),
    Rule(
        "normal reply",
        rf"(?:then )?(?:an? )?(?:normal |real )?(?:reply|result|answer) to {IDS}",
        _normal_reply,
        STDIO,
    ),
    Rule(
        "running",
        r"(?:the )?(?:process|server) (?:is )?(?:still )?(?:running|alive|serving)"
        r"|the session goes on",
        _running,
        STDIO,
    ),
    Rule(
        "no reply",
        r"no reply (?:and no error )?(?:for|to) (?:the )?(?:blank lines|notifications?"
        r"|it|them)(?: and no error)?",
        _no_null_reply,
        STDIO,
    ),
    Rule("one for each", r"(?:exactly )?one (?:reply )?for each(?: id)?", _one_each, STDIO),
    Rule(
        "real results",
        r"each (?:is )?(?:the|a) real result|all of them (?:are )?results",
        _real_results,
        STDIO,
    ),
    Rule(
        "no reply is",
        r'no reply (?:is|says|holds|contains) (?:an? )?"(?P<words>[^"]+)"(?: error)?',
        _no_reply_is,
        STDIO,
    ),
    Rule(
        "exits",
        r"(?:the )?(?:process|server|it) (?:exits|ends|stops)(?: with)?(?: code)?(?: "
        rf"(?P<code>-?\d+))?(?: within {_BOUND})?",
        _exits,
        STDIO,
    ),
    Rule("cpu", rf"it used (?:under|less than|below) {_BOUND} of CPU(?: .+)?", _cpu, STDIO),
    Rule(
        "pure",
        r"every line on stdout (?:parses as|is) (?:valid )?JSON-RPC(?: 2\.0)?|stdout "
        r"(?:is|stays) (?:clean|pure)|nothing else on stdout",
        _pure,
        STDIO,
    ),
    Rule("on stderr", r"(?P<words>.+?) (?:are|is|ends?|lands?) on stderr", _on_stderr, STDIO),
    Rule("empty stdin", r"the child (?:saw|sees|gets|got) an empty stdin", _empty_stdin, STDIO),
    Rule(
        "long result",
        rf"{IDS} returns all (?P<count>\d+) characters(?: on one line)?",
        _long_result,
        STDIO,
    ),
    Rule("replies", rf"(?:exactly |only )?(?P<count>{NUMBER}) repl(?:y|ies)", _count, STDIO),
    Rule(
        "ids identical",
        r"ids?(?: type and value)? (?:are |is )?(?:identical to the request|as sent)"
        r"(?:, no float rounding)?",
        _ids_identical,
        STDIO,
    ),
    Rule("array", rf"an array with (?P<count>both|{NUMBER}) replies", _array, STDIO),
    Rule(
        "code by id",
        rf"{IDS}:? (?:gets? |is |are |has |have |answered )*(?:with )?(?:error |an error )?"
        rf"(?:code )?(?P<codes>{RPC_CODE}(?:(?:,? or |, ){RPC_CODE})*)",
        _ids_code,
        STDIO,
    ),
    Rule(
        "no reply to id",
        rf"no reply (?:to|for) {IDS}",
        _no_reply_to,
        STDIO,
    ),
    Rule("no reply to id", rf"{IDS} gets? no reply", _no_reply_to, STDIO),
    Rule("silence", r"no repl(?:y|ies)(?: at all)?|nothing is answered", _silence, STDIO),
    Rule(
        "error result",
        r"(?:an? |the )?(?:(?:tool )?result with )?isError(?: is| set to)?(?:: ?| )?(?:true)?",
        _is_error_result,
        STDIO,
    ),
    Rule("has result", r"(?:an? |the |its |normal )*result", _has_result, STDIO),
    Rule(
        "stderr holds",
        r"stderr (?:holds|has|says|names) (?P<no>no )?(?P<words>.+)",
        _stderr_holds,
        STDIO,
    ),
)
