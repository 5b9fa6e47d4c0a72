"""The error by which a job of a sweep ends."""

from attnlab.composition.error import ExperimentError


class JobFailedError(ExperimentError):
    """A job of a sweep failed, and has said so."""
