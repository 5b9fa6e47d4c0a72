"""The test sentences of a model sorted by their loss, computed in the background."""

from __future__ import annotations

import threading
import time
from typing import Annotated, Any, Literal

from pydantic import Field

from attnlab.errors import ExperimentError
from attnlab.tasks.predictor import ScoredSentences

PAUSE = 0.01  # seconds between two batches, in which others get hold of the model


class LossTable:
    """Sentences with their losses; the first question starts the computation.

    lock: is held while the model computes.
    """

    def __init__(self, sentences: ScoredSentences, lock: threading.Lock) -> None:
        self._sentences = sentences
        self._model = lock
        self._rows: list[dict[str, Any]] = []
        self._problem: str | None = None
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def page(
        self,
        start: Annotated[int, Field(ge=0)] = 0,
        count: Annotated[int, Field(ge=1, le=500)] = 50,
        order: Literal["worst", "best"] = "worst",
    ) -> dict[str, Any]:
        """Some of the sentences that are computed so far, in the order of their losses.

        Returns:
            done, how many are computed; total; rows from `start` on.

        Raises ExperimentError where the computation has failed.
        """
        self._start()
        if self._problem is not None:
            raise ExperimentError(self._problem)
        rows = list(self._rows)
        rows.sort(key=lambda row: row["loss"], reverse=order == "worst")
        return {
            "done": len(rows),
            "total": self._sentences.total,
            "rows": rows[start : start + count],
        }

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                # It ends with the server.
                self._thread = threading.Thread(target=self._compute, daemon=True)
                self._thread.start()

    def _compute(self) -> None:
        try:
            while True:
                with self._model:
                    batch = next(self._sentences.batches, None)
                if batch is None:
                    return
                self._rows += batch
                time.sleep(PAUSE)
        except ExperimentError as error:
            self._problem = str(error)
        except Exception as error:  # so that the page does not wait for ever
            self._problem = f"the test sentences cannot be computed: {error}"
            raise
