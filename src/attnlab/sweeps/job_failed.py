"""The error by which a job of a sweep ends."""

from attnlab.errors import ExperimentError


class JobFailedError(ExperimentError):
    """A job of a sweep failed, and has said so."""
