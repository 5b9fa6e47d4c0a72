"""A fingerprint of local raw data, which shows whether they changed, without reading them."""

from __future__ import annotations

from attnlab.data.hub_loading import resolve


def raw_state(path: str | None) -> str:
    """Names, sizes and times of the file, or of the files in the folder, that `data.path` names; empty for None."""
    if path is None:
        return ""
    place = resolve(path)
    files = sorted(place.rglob("*")) if place.is_dir() else [place]
    stats = [(file, file.stat()) for file in files if file.is_file()]
    return "\n".join(f"{file.name} {stat.st_size} {stat.st_mtime_ns}" for file, stat in stats)
