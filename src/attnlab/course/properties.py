"""Properties of right weights and probabilities, and the sentences on results that lack them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlab.course.function_exercise import Inputs, Property
from attnlab.course.sentence import Sentence

Array = NDArray[Any]
# Less weight than this is none: masks of -1e9 leave exactly 0, too.
NEGLIGIBLE = 1e-6


def weights_properties(result: int, mask: int) -> tuple[Property, ...]:
    """Those of weights (B, S).

    result, mask: the places of the weights among the results, and of the mask among the inputs.
    """

    def of_weights(look: Callable[[Array, Array], Sentence | None]) -> Property:
        def property_(
            inputs: Inputs, results: Sequence[Array], _: Sequence[Array]
        ) -> Sentence | None:
            return look(results[result].astype(np.float64), inputs[mask])

        return property_

    return of_weights(_only_pads), of_weights(_pads), of_weights(_sums), of_weights(_negative)


def sums_to_one(_: Inputs, results: Sequence[Array], __: Sequence[Array]) -> Sentence | None:
    """That each row of the first result, (B, V), is a distribution."""
    for number, row in enumerate(results[0].astype(np.float64), start=1):
        total = row.sum()
        if row.min() < -NEGLIGIBLE or abs(total - 1) > 1e-4:
            return Sentence(
                f"{number}번째 행은 확률 분포가 아닙니다. 더하면 {total:.4f}이고, 가장 작은 값은 "
                f"{row.min():.4f}입니다.",
                f"row {number} is no distribution: it sums to {total:.4f}, and its smallest number "
                f"is {row.min():.4f}.",
            )
    return None


def _only_pads(weights: Array, mask: Array) -> Sentence | None:
    has_pads = ~mask.all(1)
    on_real_tokens = np.abs(np.where(mask, weights, 0)).sum(1)
    if has_pads.any() and (on_real_tokens[has_pads] < NEGLIGIBLE).all():
        return Sentence(
            "실제 토큰의 가중치가 모두 0이고 패딩만 가중치를 받습니다. "
            "마스크는 실제 토큰에서 True입니다.",
            "all real tokens have weight 0, and pads have all of it; "
            "the mask is True at real tokens.",
        )
    return None


def _pads(weights: Array, mask: Array) -> Sentence | None:
    on_pads = np.abs(np.where(mask, 0, weights)).sum(1)
    for number, share in enumerate(on_pads, start=1):
        if share > NEGLIGIBLE:
            return Sentence(
                f"{number}번째 문장의 패딩이 가중치를 {share:.2g}만큼 받습니다.",
                f"the pads of sentence {number} get a weight of {share:.2g}.",
            )
    return None


def _sums(weights: Array, mask: Array) -> Sentence | None:
    sums = np.where(mask, weights, 0).sum(1)
    for number, total in enumerate(sums, start=1):
        if abs(total - 1) > 1e-4:
            return Sentence(
                f"{number}번째 문장에서 실제 토큰의 가중치를 더하면 {total:.4f}입니다.",
                f"the weights of sentence {number} sum to {total:.4f} over its real tokens.",
            )
    return None


def _negative(weights: Array, _: Array) -> Sentence | None:
    if weights.min() < -NEGLIGIBLE:
        return Sentence(
            f"음수인 가중치({weights.min():.2f})가 있습니다.",
            f"there is a negative weight ({weights.min():.2f}).",
        )
    return None
