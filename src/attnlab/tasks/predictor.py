"""The base class of what `attnlab.load` returns: a trained model that one can ask."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from attnlab.batch import Padding
from attnlab.data.corpus import TextCleaning
from attnlab.data.prepared import Prepared
from attnlab.data.tokenizer import Tokenizer
from attnlab.model.attention.intervention import Intervention
from attnlab.runs.run_folder import ServedModel


class Predictor(ABC):
    """A trained model with its tokenizers: `predictor("a text")`.

    Its constructor sets `model`, `cleaning` and `config`.

    does: what it does with a text, as in "a model that translates".
    commands: the subcommands of `attnlab` that take it.
    served: what MLflow says of its answers.

    model: in evaluation mode.
    cleaning: of the corpus that it was trained on. Its limits of length drop no text here.
    config: that it was trained with; None where it is unknown.
    example: a short text of the data that it was trained with; "" where it is unknown.
    """

    does: ClassVar[str]
    commands: ClassVar[tuple[str, ...]] = ()
    served: ClassVar[ServedModel]

    model: Any
    cleaning: TextCleaning
    config: Mapping[str, Any] | None
    example: str = ""

    if TYPE_CHECKING:
        # Each predictor has its own settings beside the text, or the list of texts. `stream` gives
        # one answer after the other, in the order of the texts and in steady memory.
        __call__: Callable[..., Any]
        stream: Callable[..., Iterator[Any]]

    @classmethod
    @abstractmethod
    def load(cls, folder: Path, device: str = "cpu", allow: Collection[str] = ()) -> Self:
        """The predictor of a model folder alone.

        Args:
            allow: modules outside of attnlab whose classes the folder may name.

        Raises ExperimentError where the folder is broken.
        """

    @classmethod
    @abstractmethod
    def of_data(
        cls, model: Any, data: Any, search: Mapping[str, Any] | None, cleaning: TextCleaning
    ) -> Self:
        """The predictor of a model that was trained on prepared data.

        search: the section of the config.
        """

    @abstractmethod
    def plain_answers(
        self, texts: Sequence[str], attention: bool = False, **settings: Any
    ) -> list[dict[str, Any]]:
        """The answers as plain objects that fit in JSON, as `served` describes them.

        attention: whether to add the tokens and the attention.

        Raises ExperimentError as `stream` does.
        """

    @property
    @abstractmethod
    def source_tokenizer(self) -> Tokenizer:
        """The tokenizer of what the encoder reads."""

    @property
    def padding(self) -> Padding:
        """How the model's batches are padded."""
        padding: Padding = self.model.padding
        return padding

    def check_intervention(self, intervention: Intervention) -> None:  # noqa: B027
        """Raise ExperimentError for an intervention that this model cannot have."""


@dataclass(frozen=True)
class ScoredSentences:
    """Sentences with what a model makes of them, computed while they are read.

    total: how many sentences there are.
    batches: lists of sentences as JSON objects, each with its `loss`.
    """

    total: int
    batches: Iterator[list[dict[str, Any]]]


@dataclass(frozen=True)
class ExplorerPage:
    """What the explorer's page needs of a model.

    kind: of the page, `translation` or `classification`.
    example: a text to start with; "" for none.
    parts: the parts of the model whose formulas the page shows, by name.
    analyses: by the last part of their addresses, `translate` for /api/translate. Each takes the
        predictor, and what the page sends, as JSON.
    reads: the kind of prepared data whose test split the page offers; None for none.
    pairs: of such data, pairs of the test split, each with its `source`; None for none.
    score_sentences: of such data, all sentences of the test split. It raises ExperimentError for
        data that do not fit the model.
    """

    kind: str
    example: str
    parts: Mapping[str, Any]
    analyses: Mapping[str, Callable[..., Any]]
    reads: type[Prepared] | None = None
    pairs: Callable[[Any], list[dict[str, Any]]] | None = None
    score_sentences: Callable[[Any], ScoredSentences] | None = None
