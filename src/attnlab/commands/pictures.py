"""Files of pictures of the attention."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attnlab.errors import ExperimentError
from attnlab.evaluation.attention_map import AttentionMap
from attnlab.files import atomic_file
from attnlab.plots.attention import coloured_sentences, heat_map, heat_map_html, sentences_html
from attnlab.plots.figure import save_png


def draw(maps: Sequence[AttentionMap], path: Path, as_sentences: bool = False) -> None:
    """Write heat maps, a .png for each, or coloured sentences; or a page with all of them.

    Raises ExperimentError where there is nothing to draw, or too much.
    """
    if not maps:
        raise ExperimentError(f"there is no attention to draw; {path} is not written")
    try:
        if path.suffix == ".html":
            with atomic_file(path) as temporary:
                temporary.write_text(sentences_html(maps) if as_sentences else heat_map_html(maps), encoding="utf-8")
        elif as_sentences:
            save_png(coloured_sentences(maps), path)
        else:
            for number, each in enumerate(maps, 1):
                save_png(heat_map(each), path if len(maps) == 1 else path.with_stem(f"{path.stem}_{number}"))
    except ValueError as error:  # matplotlib's for a picture of many thousand pixels
        raise ExperimentError(f"{path} cannot be drawn ({error}); give fewer texts, or a .html file") from None
