"""Which arguments of tool calls are cut everywhere?"""

from itertools import product

from tests.unit.redaction.samples import jwt, key

MAIL = "jane.doe@mail.example.com"
MAIL_ESCAPED = "jane\\u002edoe\\u0040mail.ex\\u0061mple.com"
CARD = "4111 1111 1111 1111"
EMOJI = "\\ud83d\\ude00"

PLAIN = [
    "{}",
    "[]",
    '""',
    "0",
    "-0.5e-3",
    "true",
    "null",
    "[[],{},[[]]]",
    '{"a":{"b":{"c":{"d":[1,2,{"e":null}]}}}}',
    ' { "a" : [ 1 , 2.50 , -3e2 ] , "b" : true } ',
    '\n{\r\n\t"a":\n"x"\n}\n',
    '{"":"","a":"","b":[""]}',
    '{"path":"C:\\\\temp\\\\n\\/x","q":"\\"","s":"a\\tb\\nc"}',
    f'{{"e":"{EMOJI}{EMOJI}","k":"\\u00e9\u00e9\u4f60\U0001f600"}}',
    '{"half":"\\ud83d","low":"\\ude00","mixed":"\\ud83d\\u0041"}',
    '{"n":12345678901234567890123456789,"m":0.1234567890123456789}',
    '{"order":1234567890123456,"t":1764500000005,"id":"3f2504e0-4f89-41d3-9a0c-630433107186"}',
    '{"\\u006bey":"v","k\\"2":"w","k\\\\":"x"}',
]
STRINGS = [
    MAIL,
    MAIL_ESCAPED,
    f"to {MAIL}, and a@b.co",
    CARD,
    "4111\\u00201111\\u00a01111 1111",
    "\\uff14111 1111 1111 1111",
    "536-90-4399",
    "5\\u00336-90\\u20114399",
    key("ghp_", 36),
    key("AKIA", 0) + "IOSFODNN7EXAMPLE",
    jwt(300),
    f"{EMOJI}{MAIL}{EMOJI}",
    f"line\\n{MAIL}\\n{CARD}\\tend",
    "jane@exam\\u00adple.com \\ud83d",
    "\u4f60\u597d jane@example.com\u3002",
    "select * from t where a = 'jane@example.com' -- \\\\",
    "4111 1111 1111 1112 and 000-12-3456",
    "git@github.com:o/r.git",
]
SHAPES = [
    '{{"to":"{0}","n":1}}',
    '[["{0}",{{"x":[1,"{0}"]}}],"z"]',
]
NUMBERS = [
    '{"card":4111111111111111}',
    '{"cards":[4111111111111111, 378282246310005 ,5]}',
    "[4111111111111111]",
    "4111111111111111",
    '{"a":{"b":[[4111111111111112,4111111111111111]]},"c":"4111111111111111"}',
]
DOCUMENTS = [
    *PLAIN,
    *(shape.format(text) for text, shape in product(STRINGS, SHAPES)),
    *NUMBERS,
]
