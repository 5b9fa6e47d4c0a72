"""BLEU, chrF, TER and exact match of a corpus, through torchmetrics and with sacrebleu's numbers.

torchmetrics keeps the running sums, adds them up over processes and holds the formulas. Held against
sacrebleu 2.6, torchmetrics 1.9 is exact for BLEU (its `smooth=False` is sacrebleu's `smooth:none`), but

- chrF averages F-scores over all orders where sacrebleu averages precision and recall over the effective ones,
  leaves the reference of a hypothesis that shares no character with it out of the sums (an empty
  hypothesis beside a perfect one scores 100), and takes only U+0020 for white space;
- TER calls the edit distance with hypothesis and reference exchanged, so that empty hypotheses cost nothing
  and some word shifts are found in one direction only.

Both are corrected here: chrF's formula and the counts of a sentence are sacrebleu's, the rest is torchmetrics'.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.metrics.helpers import extract_all_char_ngrams
from torch import Tensor, nn
from torchmetrics import MeanMetric, Metric
from torchmetrics.functional.text import sacre_bleu_score
from torchmetrics.text import CHRFScore, SacreBLEUScore, TranslationEditRate


class CharacterFScore(CHRFScore):
    """chrF2 (Popović 2015): F2 of the mean precision and recall of character n-grams, n = 1..6, white space left out.

    sacrebleu's default (`eff:yes`): the means go over the orders of which both sides have n-grams, so that a text of
    two characters is not penalised for its missing 6-grams.
    """

    def __init__(self) -> None:
        super().__init__(n_char_order=6, n_word_order=0, beta=2.0)

    def update(self, preds: Sequence[str], target: Sequence[Sequence[str]]) -> None:
        """Add hypotheses and their references, one each: `target` is a list of lists of one."""
        sums = {text: [0] * self.n_char_order for text in ("preds", "target", "matching")}
        for hypothesis, (reference,) in zip(preds, target, strict=True):
            ngrams = extract_all_char_ngrams(hypothesis, self.n_char_order)
            reference_ngrams = extract_all_char_ngrams(reference, self.n_char_order)
            for order, (ours, theirs) in enumerate(zip(ngrams, reference_ngrams, strict=True)):
                # As in sacrebleu: orders that exceed the reference's length do not count for precision.
                sums["preds"][order] += ours.total() if theirs else 0
                sums["target"][order] += theirs.total()
                sums["matching"][order] += (ours & theirs).total()
        for text, orders in sums.items():
            for order, count in enumerate(orders, start=1):
                name = f"total_{text}_char_{order}_grams"
                setattr(self, name, getattr(self, name) + count)

    def compute(self) -> Tensor:
        """chrF2 in 0..1; 0 where no order has n-grams on both sides."""
        ours, theirs, matching = (
            torch.stack([getattr(self, f"total_{text}_char_{n}_grams") for n in range(1, self.n_char_order + 1)])
            for text in ("preds", "target", "matching")
        )
        effective = (ours > 0) & (theirs > 0)
        if not matching[effective].any():
            return torch.tensor(0.0, device=self.device)
        precision = (matching / ours)[effective].mean()
        recall = (matching / theirs)[effective].mean()
        factor = self.beta**2
        return (1 + factor) * precision * recall / (factor * precision + recall)


class EditRate(TranslationEditRate):
    """Translation edit rate (Snover et al. 2006): insertions, deletions, substitutions and shifts of words.

    Per reference word; lowercased and split at white space, which are sacrebleu's defaults
    (`case:lc|tok:tercom|norm:no|punct:yes|asian:no`).
    """

    def __init__(self) -> None:
        super().__init__()
        self.sentence_metric = TER()

    def update(self, preds: Sequence[str], target: Sequence[Sequence[str]]) -> None:
        """Add hypotheses and their references, one each: `target` is a list of lists of one."""
        edits, words = 0.0, 0.0
        for hypothesis, references in zip(preds, target, strict=True):
            score = self.sentence_metric.sentence_score(hypothesis, list(references))
            edits += score.num_edits
            words += score.ref_length
        self.total_num_edits = self.total_num_edits + edits
        self.total_tgt_len = self.total_tgt_len + words


class TextMetrics(nn.Module):
    """Metrics of decoded sentences against one reference each, accumulated over batches and processes.

    tokenize: sacrebleu's tokenizer for BLEU: `13a` for raw text, `none` where the corpus comes tokenised,
        `intl`, `char`, `zh`, ...
    ter: also the translation edit rate; it takes longest, so validation does without.

    `compute` gives `bleu`, `chrf` and, with `ter`, `ter` in 0..100 as sacrebleu prints them (a TER can exceed
    100), and `exact_match` in 0..1: the share of hypotheses that equal their reference to the character.
    """

    def __init__(self, tokenize: str = "13a", *, ter: bool = True) -> None:
        super().__init__()
        bleu = SacreBLEUScore(tokenize=tokenize, smooth=False)  # type: ignore[arg-type]
        of_texts = {"bleu": bleu, "chrf": CharacterFScore(), **({"ter": EditRate()} if ter else {})}
        self.percentages: Mapping[str, Metric] = nn.ModuleDict(of_texts)  # type: ignore[assignment]
        self.exact_match = MeanMetric()

    def update(self, hypotheses: Sequence[str], references: Sequence[str]) -> None:
        """Add sentences; both lists have one length.

        Raises:
            ValueError: the lists differ in length.
        """
        if len(hypotheses) != len(references):
            raise ValueError(f"{len(hypotheses)} hypotheses for {len(references)} references")
        if not hypotheses:
            return
        # sacrebleu strips the right end before it tokenises; without, `a-\n` would be joined differently.
        stripped = [hypothesis.rstrip() for hypothesis in hypotheses]
        targets = [[reference.rstrip()] for reference in references]
        for metric in self.percentages.values():
            metric.update(stripped, targets)
        equal = [float(ours == theirs) for ours, theirs in zip(hypotheses, references, strict=True)]
        self.exact_match.update(self.exact_match.mean_value.new_tensor(equal))

    def compute(self) -> dict[str, float]:
        """The metrics of all sentences so far, over all processes."""
        found = {name: 100 * metric.compute().item() for name, metric in self.percentages.items()}
        return {**found, "exact_match": self.exact_match.compute().item()}

    def reset(self) -> None:
        """Forget all sentences."""
        for metric in (*self.percentages.values(), self.exact_match):
            metric.reset()


def sacrebleu_metrics(tokenize: str) -> dict[str, BLEU | CHRF | TER]:
    """sacrebleu's own metrics in the settings that give the numbers of `TextMetrics`."""
    return {"bleu": BLEU(tokenize=tokenize, smooth_method="none", force=True), "chrf": CHRF(), "ter": TER()}


def signatures(tokenize: str) -> dict[str, str]:
    """sacrebleu's signature strings for `bleu`, `chrf` and `ter`, and a sentence for `exact_match`."""
    written = {"exact_match": "share of hypotheses equal to their reference to the character"}
    for name, metric in sacrebleu_metrics(tokenize).items():
        metric.corpus_score(["one"], [["one"]])  # the signature contains the number of references
        written[name] = metric.get_signature().format()
    return written


_WIDTHS = (1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000)


def length_buckets(lengths: ArrayLike) -> list[tuple[int, int]]:
    """Ranges [from, to] of one round width that cover the lengths, at most ten.

    The width follows the 99th percentile; longer sentences belong to the last range. Empty ranges are left out.
    """
    values = np.asarray(lengths, dtype=np.int64)
    if values.size == 0:
        return []
    low, high = int(values.min()), int(np.percentile(values, 99, method="higher"))
    widths = (width for width in _WIDTHS if (high - 1) // width - (low - 1) // width < 10)
    width = next(widths, max(1, -(-high // 10)))
    # Ranges are 1-5, 6-10, ...: an upper end is a multiple of the width.
    ends = list(range(-(-low // width) * width, high + width, width))
    buckets = [(end - width + 1, end) for end in ends if end - width + 1 <= high]
    buckets[-1] = (buckets[-1][0], max(buckets[-1][1], int(values.max())))
    return [(a, b) for a, b in buckets if ((values >= a) & (values <= b)).any()]


def by_length(
    source_lengths: ArrayLike,
    hypotheses: Sequence[str],
    references: Sequence[str],
    tokenize: str,
    ranges: Sequence[tuple[int, int]] | None = None,
) -> list[dict[str, int | float]]:
    """Corpus BLEU (0..100) and exact match (0..1) of each range of source lengths.

    A row: {"from", "to", "sentences", "bleu", "exact_match"}, both ends included.

    source_lengths: in tokens, `<eos>` not counted.
    ranges: [from, to], of lengths that occur; None chooses about ten round ones.
    """
    lengths = np.asarray(source_lengths, dtype=np.int64)
    table: list[dict[str, int | float]] = []
    for low, high in length_buckets(lengths) if ranges is None else ranges:
        rows = np.flatnonzero((lengths >= low) & (lengths <= high)).tolist()
        ours = [hypotheses[row].rstrip() for row in rows]
        theirs = [[references[row].rstrip()] for row in rows]
        bleu = 100 * float(sacre_bleu_score(ours, theirs, tokenize=tokenize))  # type: ignore[arg-type]
        equal = sum(hypotheses[row] == references[row] for row in rows)
        table.append({"from": low, "to": high, "sentences": len(rows), "bleu": bleu, "exact_match": equal / len(rows)})
    return table
