"""sacrebleu's test as we ask it."""

from __future__ import annotations

from sacrebleu.significance import PairedTest

from attnlab.evaluation.paired_bootstrap import paired_bootstrap_p
from attnlab.evaluation.text_metrics import sacrebleu_metrics


def test_paired_bootstrap_p_equals_sacrebleu_and_separates_same_from_different() -> None:
    references = [f"the cat number {number} sat on the 고양이 mat" for number in range(30)]
    worse = [text.replace("cat", "dog").replace("on the", "under") for text in references]
    nearly = [worse[0], *references[1:]]
    metric = sacrebleu_metrics("13a")["bleu"]
    same, near, different = paired_bootstrap_p(metric, references, [references, nearly, worse], references, 200)
    assert different == 1 / 201
    assert near > 0.05
    assert same == 1.0
    systems = [("baseline", references), ("worse", worse)]
    _, theirs = PairedTest(systems, {"bleu": metric}, [references], test_type="bs", n_samples=200)()
    assert theirs["BLEU"][1].p_value == different


def test_no_difference_is_never_significant() -> None:
    """Two models that are wrong in different ways have the same BLEU, none."""
    references = [f"문장 {number} 입니다 오늘" for number in range(20)]
    one, other = ([f"{word} {number}" for number in range(100, 120)] for word in ("x", "y"))
    metric = sacrebleu_metrics("13a")["bleu"]
    assert paired_bootstrap_p(metric, one, [other], references, 200) == [1.0]
