"""sacrebleu's own test of two translations of the same sentences, as papers report it."""

from __future__ import annotations

from collections.abc import Sequence

from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest, Result


def paired_bootstrap_p(
    metric: BLEU | CHRF | TER,
    baseline: Sequence[str],
    others: Sequence[Sequence[str]],
    references: Sequence[str],
    samples: int,
) -> list[float]:
    """p of sacrebleu's paired bootstrap test for each of `others` against the baseline (Koehn 2004, with the centred
    difference of MultEval, Clark et al. 2011).

    It knows one run of a system and no seeds: whether these two trained models differ, not whether the systems do.
    The seed of its samples is sacrebleu's (SACREBLEU_SEED, 12345). Where both have the same score, p is 1; sacrebleu
    itself would call no difference at all significant.
    """
    named = [("baseline", baseline), *((str(number), texts) for number, texts in enumerate(others))]
    _, found = PairedTest(named, {"": metric}, [references], test_type="bs", n_samples=samples)()
    (results,) = (of_metric for name, of_metric in found.items() if name != "System")
    ours, *theirs = (result for result in results if isinstance(result, Result))
    p_values = []
    for result in theirs:
        assert result.p_value is not None
        p_values.append(1.0 if result.score == ours.score else float(result.p_value))
    return p_values
