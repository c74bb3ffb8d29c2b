"""Do globs, URIs and regular expressions mean one thing each?"""

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.mcp.folding import is_invisible
from tidegate.mcp.patterns import (
    UnsafePattern,
    canonical_uri,
    compile_pattern,
    glob,
    joined_by_ampersands,
    literal_prefix,
    loose_uris,
)


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("*", ["", "a", "a\nb"], []),
        ("a", ["a"], ["", "A", "aa", "a\n"]),
        ("a*", ["a", "ab", "a\n"], ["", "ba"]),
        ("*a", ["a", "ba"], ["ab"]),
        ("a*b*c", ["abc", "axbxc", "abcbc", "abbcc"], ["ac", "acb", "abcd"]),
        ("**a**", ["a", "xay"], ["b"]),
        ("?", ["a", "*", "\n"], ["", "ab"]),
        ("a?c*", ["abc", "abcd"], ["ac"]),
        ("[ab]", ["[ab]"], ["a"]),
        ("a.c", ["a.c"], ["abc"]),
        ("a\\*", ["a\\", "a\\b"], ["a*"]),
    ],
)
def test_a_glob_matches_the_whole_text(pattern: str, matching: list[str], other: list[str]) -> None:
    test = glob(pattern)
    assert [text for text in matching if not test(text)] == []
    assert [text for text in other if test(text)] == []


def naive(pattern: str, text: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(naive(pattern[1:], text[cut:]) for cut in range(len(text) + 1))
    return bool(text) and pattern[0] in ("?", text[0]) and naive(pattern[1:], text[1:])


def test_globs_agree_with_the_plain_definition() -> None:
    patterns = ["".join(letters) for size in range(5) for letters in product("ab*?", repeat=size)]
    texts = ["".join(letters) for size in range(5) for letters in product("ab", repeat=size)]
    for pattern in patterns:
        test = glob(pattern)
        assert [test(text) for text in texts] == [naive(pattern, text) for text in texts], pattern


def test_a_long_name_and_many_stars_stay_cheap() -> None:
    assert not glob("a*" * 60 + "b")("a" * 5000)


def test_the_prefix_of_a_glob_is_what_all_matches_share() -> None:
    assert [literal_prefix(p) for p in ("file:///a/*", "a?b", "abc", "*")] == [
        "file:///a/",
        "a",
        "abc",
        "",
    ]


@pytest.mark.parametrize(
    ("uri", "plain"),
    [
        ("file:///data/a", "file:///data/a"),
        ("FILE:///data/A", "file:///data/A"),
        ("http://HOST/Path?Q=1#F", "http://host/Path?Q=1#F"),
        ("file:///data/a%20b", "file:///data/a b"),
        ("file:///%64ata/a", "file:///data/a"),
        ("file:///data%2fa", "file:///data%2Fa"),
        ("https://host/a%3fb?c%3fd%2f%23e", "https://host/a%3Fb?c?d/%23e"),
        ("file:///data/%C3%A9", "file:///data/é"),
        ("file:///data/é", "file:///data/é"),
        ("urn:isbn:1", "urn:isbn:1"),
        ("test://template/{id}/x", "test://template/{id}/x"),
        ("a:", "a:"),
        ("file:///data/...", "file:///data/..."),
        ("file:/data/a", "file:///data/a"),
        ("file://localhost/data/a", "file:///data/a"),
        ("FILE://LocalHost/data/a", "file:///data/a"),
        ("file://other/data/a", "file://other/data/a"),
        ("https://host/a?b=../c&d=1..2#e/f", "https://host/a?b=../c&d=1..2#e/f"),
        ("https://host/a?q=%2F%2E%2E.", "https://host/a?q=/..."),
        ("https://host/app#/users/7", "https://host/app#/users/7"),
        ("db://main/orders?where=a/b&n=..", "db://main/orders?where=a/b&n=.."),
        ("file:///data/a?v=1.2#line=3", "file:///data/a?v=1.2#line=3"),
        ("http://host:80/a", "http://host/a"),
        ("https://host:443/a", "https://host/a"),
        ("http://host:/a", "http://host/a"),
        ("http://host:443/a", "http://host:443/a"),
    ],
)
def test_a_uri_has_one_canonical_spelling(uri: str, plain: str) -> None:
    assert canonical_uri(uri) == plain


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "data/a",
        "/etc/passwd",
        "1a:x",
        "file:///data/../etc",
        "file:///data/./a",
        "file:///data/..",
        "file:///data/..%2fetc",
        "file:///data/%2e%2e/etc",
        "file:///data/%2E./etc",
        "file:///data/%252e%252e/etc",
        "file:///data/%25%32%65/etc",
        "file:///data/..;/etc",
        "file:///data/.;x=1/a",
        "file:///data/\uff0e\uff0e/etc",
        "file:///data/\u2025/etc",
        "file:///data/x\uff0f../etc",
        "file:data/a",
        "file:etc/passwd",
        "file:",
        "file://host",
        "file:?/etc/passwd",
        "file://../etc/passwd",
        "notes://../etc",
        "file:///data/?/../../etc",
        "file:///data/#/../../etc",
        "file:///data?/../etc",
        "file:///data#..",
        "file:///data?a=../etc",
        "file:///data?a&..",
        "file:///data?%2e%2e%2fetc",
        "file:///data?/\uff0e\uff0e/etc",
        "file:///data/%3f/../../etc",
        "file:///data/..%20/etc",
        "notes://data/?/../../etc",
        "https://host/a#/../b",
        "https://host/a?..",
        "file:///data\uff3cetc",
        "file:///data\\etc",
        "file:///data/%5cetc",
        "file:///data/%",
        "file:///data/%zz",
        "file:///data/%ff",
        "file:///data/%00",
        "file:///data/a b",
        "file:///data/a\n",
        "file:///data/\u200b",
        "file:///data/%E2%80%8B",
        "file://h\u00f6st/",
        "f\u0131le:///x",
        "a:" + "b" * 2048,
    ],
)
def test_a_uri_that_two_readers_could_read_differently_is_none(uri: str) -> None:
    assert canonical_uri(uri) is None


@pytest.mark.parametrize(
    ("plain", "loose"),
    [
        ("file:///etc/passwd", "file:///etc/passwd"),
        ("file:////etc//passwd", "file:///etc/passwd"),
        ("file:///etc/", "file:///etc/"),
        ("file:///", "file:///"),
        ("file:///etc;v=1/passwd;x", "file:///etc/passwd"),
        ("file://127.0.0.1/etc/passwd", "file:///etc/passwd"),
        ("file://user@host:80/etc/passwd", "file:///etc/passwd"),
        ("file:///etc/passwd?x#y", "file:///etc/passwd"),
        ("file:///\uff0fetc/passwd", "file:///etc/passwd"),
        ("https://user@host./a?q=1#f", "https://host/a?q=1"),
        ("https://host:8443/a//b", "https://host:8443/a/b"),
        ("urn:isbn:1", "urn:isbn:1"),
        ("a:", "a:"),
        ("no/scheme", "no/scheme"),
    ],
)
def test_a_careless_server_takes_many_spellings_for_one(plain: str, loose: str) -> None:
    readings = loose_uris(plain)
    assert loose in readings
    assert ";" in plain or readings == {loose}


@pytest.mark.parametrize(
    ("plain", "readings"),
    [
        ("file:///a;x/b;y", {"a;x/b;y", "a/b", "a;x/b", "a"}),
        ("file:////a\uff1bx", {"a;x", "a"}),
        ("file:///a?b;c", {"a"}),
    ],
)
def test_a_semicolon_in_a_path_is_part_of_a_name_or_begins_parameters(
    plain: str, readings: set[str]
) -> None:
    assert loose_uris(plain) == {f"file:///{reading}" for reading in readings}


@pytest.mark.parametrize(
    ("plain", "readings"),
    [
        ("https://h/a?x;y=/z#f;g", {"a?x;y=/z", "a?x&y=/z", "a?x/z", "a?x"}),
        ("https://h/a;v?x;y", {"a;v?x;y", "a;v?x&y", "a;v?x", "a?x;y", "a?x&y", "a?x", "a"}),
        ("https://h/a?x&y", {"a?x&y"}),
    ],
)
def test_a_semicolon_in_a_query_is_what_an_ampersand_is_or_begins_parameters(
    plain: str, readings: set[str]
) -> None:
    assert loose_uris(plain) == {f"https://h/{reading}" for reading in readings}


@given(st.text("a;/?&=#", max_size=40))
def test_the_readings_of_a_uri_are_few(rest: str) -> None:
    for start in ("file://", "https://h", "urn:"):
        assert len(loose_uris(f"{start}/{rest}")) <= 13


@pytest.mark.parametrize(
    ("pattern", "spellings"),
    [
        ("https://h/a?x;y", {"https://h/a?x;y", "https://h/a?x&y"}),
        ("https://h/a;v?x;y", {"https://h/a;v?x;y", "https://h/a;v?x&y"}),
        ("https://h/*;y", {"https://h/*;y", "https://h/*&y"}),
        ("https://h/*;v?x;y", {"https://h/*;v?x;y", "https://h/*;v?x&y", "https://h/*&v?x&y"}),
        ("file:///a;b", {"file:///a;b"}),
        ("https://h/a?x&y", {"https://h/a?x&y"}),
    ],
)
def test_a_pattern_of_a_query_means_ampersands_as_well(pattern: str, spellings: set[str]) -> None:
    assert joined_by_ampersands(pattern) == spellings


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("[a-z]+", ["a", "abc"], ["", "A", "a1", "a\n"]),
        ("a|b", ["a", "b"], ["ab"]),
        ("(?:ab|c)d?", ["abd", "c"], ["d"]),
        (r"\d{2,3}", ["12", "123"], ["1", "١٢"]),
        (r"a{2}", ["aa"], ["a"]),
        (r"a{1,}", ["a", "aaa"], [""]),
        (r"(ab){1}", ["ab"], []),
        (r"[^\]a]\.", ["b."], ["]."]),
        (r"[]a]", ["]", "a"], ["b"]),
        (r"a*?b", ["b", "aab"], []),
        (r"^x$", ["x"], ["x\n"]),
        ("", [""], ["a"]),
        (r"\-\/", ["-/"], []),
    ],
)
def test_a_safe_pattern_is_compiled(pattern: str, matching: list[str], other: list[str]) -> None:
    compiled = compile_pattern(pattern)
    assert [text for text in matching if not compiled.fullmatch(text)] == []
    assert [text for text in other if compiled.fullmatch(text)] == []


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+",
        "(a|b)*",
        "(?:a?){9}",
        "((a*))*",
        "(a{2,3}){2}",
        "a+a+a+",
        "[a-z]*[a-z]*[a-z]*x",
        "(a|b)" * 21,
        r"(a)\1",
        r"\bx",
        r"\Z",
        r"\x41",
        "(?=a)",
        "(?!a)",
        "(?<=a)b",
        "(?i)a",
        "(?P<n>a)",
        "a)",
        "(a",
        "[a",
        "[",
        "a\\",
        "*a",
        "{2}",
        "a{3,2}",
        "a{b}",
        "[[a]]",
        "[b-a]",
        "(" * 20 + ")" * 20,
        "a" * 1025,
        "a**",
    ],
)
def test_an_unsafe_or_broken_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(UnsafePattern):
        compile_pattern(pattern)


@given(st.text(alphabet="ab()[]|?*+{},12\\d^-.", max_size=24))
def test_whatever_is_accepted_is_a_pattern_of_the_standard_library(pattern: str) -> None:
    try:
        compiled = compile_pattern(pattern)
    except UnsafePattern:
        return
    assert re.compile(pattern, re.ASCII) == compiled


def test_of_ascii_just_what_nobody_sees_is_refused_in_a_uri() -> None:
    for sign in map(chr, range(128)):
        refused = is_invisible(sign) or sign in "%\\"
        assert (canonical_uri(f"a:b{sign}c") is None) is refused
