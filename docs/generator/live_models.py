"""Live models: the frames of lessons, or the command that makes them.

A hook of MkDocs. A lesson embeds an exported model in a frame of the class `live`. The exported
pages are built, so a site may be made where they are missing. `data-text` behind the address is
the sentence to begin with. The line below a frame is for readers elsewhere, such as on GitHub, who
see no frame.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlencode

from mkdocs.structure.pages import Page

_FRAME = re.compile(
    r'(?P<start><iframe class="live" src="(?P<source>[^"?]+))"'
    r'(?: data-text="(?P<text>[^"]+)")?[^>]*></iframe>'
)
_NOTES = {
    "en": "The model of this lesson is not in this copy of the site. Build it with",
    "ko": "이 사이트에는 이 강의의 모델이 들어 있지 않습니다. 다음 명령으로 만드십시오:",
}
_COMMAND = "make course-pages docs"
_FOR_OTHERS = re.compile(r"^\*(?:Not shown here\?|여기에 보이지 않으면) .*\*\n\n", re.MULTILINE)


def on_page_markdown(markdown: str, **_: object) -> str:
    """Leave out what is said to readers who see no frame."""
    return _FOR_OTHERS.sub("", markdown)


def on_page_content(content: str, page: Page, **_: object) -> str:
    """Let models speak the language of the page, and put a note in the place of a missing one."""
    folder = Path(page.file.abs_src_path or "").parent
    language = "ko" if folder.name == "ko" else "en"
    note = f"{_NOTES[language]} <code>{_COMMAND}</code>"

    def check(frame: re.Match[str]) -> str:
        if (folder / frame["source"]).is_file():
            wanted = {"lang": language}
            if frame["text"]:
                wanted["text"] = frame["text"]
            address = f"{frame['start']}?{urlencode(wanted).replace('&', '&amp;')}"
            return frame[0].replace(frame["start"], address)
        return f'<div class="admonition note"><p class="admonition-title">{note}</p></div>'

    return _FRAME.sub(check, content)
