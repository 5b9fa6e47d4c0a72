"""Names under which validations log a measure."""

from __future__ import annotations

from collections.abc import Collection, Iterable

# The preferred one first.
_FORMS = ("validation/free_running/{}", "validation/{}", "validation/teacher_forced/{}")


def first_validated(measures: Iterable[str], logged: Collection[str]) -> str | None:
    """The logged name of the first of these measures that validations have."""
    for measure in measures:
        for form in _FORMS:
            name = form.format(measure)
            if name in logged:
                return name
    return None
