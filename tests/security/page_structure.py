"""What a page is made of, whatever its texts say."""

from __future__ import annotations

import re
from html.parser import HTMLParser

# Each would make a difference to a page that let it through.
HOSTILE = (
    "<script>alert(1)</script>",
    "</style><script>x</script>",
    '"><img src=x onerror=alert(1)>',
    "' onload='x",
    "<!--",
    "]]>",
    "<svg/onload=x>",
    "</bdi></td></table>",
    "{{ 7*7 }}",
    "{% raw %}",
    "&lt;b&gt;",
    "&#x3c;b>",
    "\x00<b>",
    "\ud800",
    "\udfff\ud83d",
    "\u202e<b>",
    "\u2066",
    "\u2028",
    "javascript:x",
    "url(http://x)",
    "\\",
    "`",
    "}*{color:red",
    "$x$",
    "\x1b[31m",
    "\x85",
    "\ufeff",
    "\U000e0001",
    "a\u0300" * 20,
    "שלום",
    "한",
    "\r\n<b>",
)


class Structure(HTMLParser):
    """The elements and texts of an HTML page.

    elements: (tag, names of its attributes) in their order.
    texts: what a reader sees, and values of data-v.
    """

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.texts: list[str] = []
        self.styles: list[str] = []
        self.other: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(name for name, _ in attrs)))
        for name, value in attrs:
            if name == "style":
                self.styles.append(value or "")
            elif name == "data-v":
                self.texts.append(value or "")
            elif name in ("src", "href"):
                own = ("#", "data:image/png;base64,", "http://localhost/")
                assert (value or "").startswith(own)

    def handle_endtag(self, tag: str) -> None:
        self.elements.append((f"/{tag}", ()))

    def handle_data(self, data: str) -> None:
        if self.elements and self.elements[-1][0] == "style":
            # Fonts depend on the characters of the page: data of ours, and ranges of numbers.
            data = re.sub(
                r"@font-face \{ font-family: '[a-z ]+'; src: url\(data:font/woff;base64,[\w+/=]*\) "
                r"format\('woff'\); unicode-range: [U+0-9A-F, ]*; \}",
                "",
                data,
            )
            self.styles.append(data.strip())
        else:
            self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        self.other.append(data)

    def unknown_decl(self, data: str) -> None:
        self.other.append(data)


MARK = ("mark", ("class", "title"))


def _without_marks(structure: Structure) -> list[tuple[str, tuple[str, ...]]]:
    """The elements but for those around wrong words, whose number depends on the words."""
    return [each for each in structure.elements if each not in (MARK, ("/mark", ()))]


def check_same_structure(hostile: str, plain: str) -> None:
    """Check that a hostile page has no element, attribute, style or comment more than a plain one.

    The page can also be written and read again.
    """
    assert hostile.encode("utf-8").decode("utf-8") == hostile
    assert not re.search("[\x00-\x08\x0e-\x1f\x7f-\x9f]", hostile)
    found, expected = Structure(hostile), Structure(plain)
    assert _without_marks(found) == _without_marks(expected)
    assert found.styles == expected.styles
    assert found.other == expected.other == []
