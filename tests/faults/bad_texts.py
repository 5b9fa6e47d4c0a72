"""Texts that are hard on some reader, tokeniser, picture, page or terminal, and yet are text: they must work."""

from __future__ import annotations

# What a page must never hold as it stands.
MARKUP = "<img src=x onerror=pwned()>"

TEXTS = {
    "control characters": "a\x01b\x07c \x1b[31mred\x1b[0m \x08\x7f\x85 d",
    "nul": "a\x00b \x00 c",
    "right to left": "שלום עולם مرحبا بالعالم 123",
    "bidi controls": "abc \u202egpj.exe\u202c \u2066x\u2069 \u200fy",
    "emoji and joiners": "👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇰🇷 ❤️",
    "zero width": "a\u200bb \u200d \ufeff \u2060 c",
    "stacked accents": "z" + "\u0301\u0323" * 300 + " b",
    "markup": f"<script>pwned()</script> {MARKUP} & \" ' </title></script><!--",
    "templates": "{{ 7 * 7 }} {% raw %} ${oc.env:HOME} ${seed} %s %(x)s {0}",
    "our own tokens": "<pad> <unk> <bos> <eos> ▁ ▁▁ ␣ @@",
    "mathematics": "$x^2$ $\\frac{ $ \\unknown{ _ ^ $$",
    "line ends": "a\u2028b\u2029c\x0bd\x0ce f",
    "noncharacters": "\ufffe \uffff \U0010ffff \ue000",
    "a long word": "x" * 9_000,
    "formula": "=cmd|' /C calc'!A0 @SUM(1) +1 -1",
    "quotes": 'a "quoted, b" \'c\' ""',
    "backslashes": "\\n \\\\ \\u0000 \\x41",
    "words for nothing": "nan None null NA N/A true 1e5 inf",
    "scripts": "한국어 日本語 中文 ไทย हिन्दी ქართული አማርኛ 𐍈",
    "two spellings": "\u1112\u1161\u11ab 한 é e\u0301 ﬁ ①",
    "white space inside": "a\u3000b\xa0c\u2009d\te",
    "a lot of tokens": "a b " * 1_500,
}
