"""The model of a folder, and its answers as plain objects that fit in JSON."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import torch

from attnlab.errors import ExperimentError
from attnlab.model.model_folder import read_facts
from attnlab.tasks.classification.classifier import ClassifiedText, SentenceClassifier
from attnlab.tasks.translation.translator import Translation, Translator


def load_folder(
    folder: Path, device: str = "cpu", allow: Collection[str] = ()
) -> Translator | SentenceClassifier:
    """The translator or the classifier of a model folder; `allow` and errors as for `load_model`.

    Raises ExperimentError for a device that cannot be used, too.
    """
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0]
        raise ExperimentError(f"the device {device} cannot be used here: {reason}") from None
    if read_facts(folder).num_classes is None:
        return Translator.load(folder, device, allow)
    return SentenceClassifier.load(folder, device, allow)


def plain_answers(
    model: Translator | SentenceClassifier,
    texts: Sequence[str],
    attention: bool = False,
    **settings: Any,
) -> list[dict[str, Any]]:
    """The answer to each text.

    Args:
        attention: whether to add the tokens and the attention.
        settings: of the search of a translator, as calling it takes them.

    Raises ExperimentError as calling the model.
    """
    if isinstance(model, SentenceClassifier):
        return [
            plain_classification(answer, attention) for answer in model.stream(texts, **settings)
        ]
    answers = model.stream(texts, with_attention=attention, **settings)
    return [plain_translation(answer, attention) for answer in answers]


def plain_translation(answer: Translation, attention: bool = False) -> dict[str, Any]:
    """`text` and `score`, and `alternatives` of an n-best list.

    With attention also `tokens`, `source_tokens` and `attention`. `attention` has a row for each
    token and a column for each source token; it is None for a model without attention.
    """
    plain: dict[str, Any] = {"text": answer.text, "score": answer.score}
    if attention:
        plain["tokens"] = answer.tokens
        plain["source_tokens"] = answer.source_tokens
        plain["attention"] = None if answer.attention is None else answer.attention.tolist()
    if answer.alternatives:
        plain["alternatives"] = [
            plain_translation(alternative, attention) for alternative in answer.alternatives
        ]
    return plain


def plain_classification(answer: ClassifiedText, attention: bool = False) -> dict[str, Any]:
    """`label` and `probabilities`, by class.

    With attention also `tokens` and `attention`, a weight for each token.
    """
    plain: dict[str, Any] = {"label": answer.label, "probabilities": answer.probabilities}
    if attention:
        plain["tokens"] = answer.tokens
        plain["attention"] = answer.attention.tolist()
    return plain
