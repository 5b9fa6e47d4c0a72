"""Links that may have come with somebody's config, and lead to files of one's own."""

from __future__ import annotations

from pathlib import Path

from attnlab.errors import ExperimentError


def refuse_link(path: Path) -> None:
    """Raise ExperimentError for a link in a place that is about to be written or cleared."""
    if path.is_symlink():
        raise ExperimentError(f"{path} is a link, and what it leads to would be overwritten; remove the link")
