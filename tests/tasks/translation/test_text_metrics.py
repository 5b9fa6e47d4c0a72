"""TextMetrics gives sacrebleu's numbers, to 1e-4, on ordinary and on odd corpora."""

from __future__ import annotations

import random

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from sacrebleu.metrics import BLEU

from attnlab.data.corpus import RougeUnit
from attnlab.evaluation.sentence_statistics import ROUGE, sacrebleu_metrics
from attnlab.tasks.translation.metrics import TextMetrics, by_length, length_buckets, signatures

SOME = (
    "a the The cat 고양이 가 안녕하세요. dog, . , 3.5 &amp; &quot; <b> 日本語 ですか? x-y 10-11 "
    "über don't - 's -- ..."
)
WORDS = [*SOME.split(), "\u3000", "\t", "\xa0"]
CORPORA = {
    "ordinary": (
        ["The cat sat on a mat.", "It rains today, doesn't it?"],
        ["The cat sat on the mat.", "It is raining, isn't it?"],
    ),
    "one hypothesis empty": (
        ["The cat sat on the mat.", ""],
        ["The cat sat on the mat.", "A dog barks."],
    ),
    "all hypotheses empty": (["", ""], ["The cat sat.", "A dog barks."]),
    "one word each": (["cat", "dog"], ["cat", "bird"]),
    "nothing shared": (["xyz", "the cat"], ["abc", "the cat"]),
    "korean": (
        ["나는 오늘 학교에 갔다.", "고양이가 매트 위에 앉았다."],
        ["나는 어제 학교에 갔습니다.", "고양이가 매트 위에 앉았다."],
    ),
    "segments of one and two characters": (["가", "나다", "라"], ["가", "나다", "마"]),
    "shifted words": (["on the mat the cat sat down today"], ["the cat sat down on the mat today"]),
    "trailing white space": (
        ["the cat- \n", " the cat\u3000sat on a\xa0mat "],
        ["the cat-", "the cat sat on a mat"],
    ),
}


def assert_like_sacrebleu(hypotheses: list[str], references: list[str], tokenize: str) -> None:
    metrics = TextMetrics(tokenize)
    metrics.update(hypotheses, references)
    ours = metrics.compute()
    for name, metric in sacrebleu_metrics(tokenize).items():
        theirs = metric.corpus_score(hypotheses, [references]).score
        assert ours[name] == pytest.approx(theirs, abs=1e-4), (name, hypotheses, references)


@pytest.mark.parametrize("tokenize", ["13a", "none", "char", "intl", "zh"])
@pytest.mark.parametrize("corpus", CORPORA)
def test_text_metrics_equal_sacrebleu(corpus: str, tokenize: str) -> None:
    assert_like_sacrebleu(*CORPORA[corpus], tokenize)


@pytest.mark.parametrize("seed", range(40))
def test_text_metrics_equal_sacrebleu_on_random_corpora(seed: int) -> None:
    rng = random.Random(seed)
    references, hypotheses = [], []
    for _ in range(rng.randint(1, 6)):
        words = rng.choices(WORDS, k=rng.randint(1, 14))
        references.append(" ".join(words))
        for _ in range(rng.randint(0, 4)):
            words.insert(rng.randrange(len(words)), words.pop(rng.randrange(len(words))))
            words[rng.randrange(len(words))] = rng.choice(WORDS)
        hypotheses.append(" ".join(words) if rng.random() < 0.9 else "")
    assert_like_sacrebleu(hypotheses, references, rng.choice(["13a", "none", "char", "intl"]))


def test_text_metrics_add_up_over_batches_and_reset() -> None:
    whole, parts = TextMetrics("13a"), TextMetrics("13a")
    parts.update(["forget me"], ["please"])
    parts.reset()
    for hypotheses, references in CORPORA.values():
        parts.update(hypotheses, references)
    parts.update([], [])
    whole.update(
        *([line for corpus in CORPORA.values() for line in corpus[side]] for side in (0, 1))
    )
    assert parts.compute() == pytest.approx(whole.compute(), abs=1e-4)


def test_text_metrics_exact_match_is_a_share() -> None:
    metrics = TextMetrics("none", ter=False)
    metrics.update(["a b", "a b ", "", "ㄱ"], ["a b", "a b", "", "ㄴ"])
    computed = metrics.compute()
    assert computed["exact_match"] == 0.5
    assert set(computed) == set(signatures("none")) - {"ter", "token_error_rate"}


def test_token_error_rate_counts_edits_for_each_hundred_reference_tokens() -> None:
    metrics = TextMetrics("none")
    # One phone replaced, one left out, two added; 2 + 3 + 0 + 1 tokens of the references.
    metrics.update(["a x", "k a", "", "a b c"], ["a b", "k a t", "", "a"])
    assert metrics.compute()["token_error_rate"] == pytest.approx(100 * 4 / 6)


def test_signatures_equal_sacrebleus() -> None:
    written = signatures("13a")
    assert written["bleu"].startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:none|version:2.")
    assert written["chrf"].startswith("nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.")
    assert written["ter"].startswith(
        "nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:2."
    )
    assert "tok:none" in signatures("none")["bleu"]


def _one_process(rank: int, meeting_point: str, results: mp.SimpleQueue) -> None:
    dist.init_process_group("gloo", init_method=f"file://{meeting_point}", rank=rank, world_size=2)
    metrics = TextMetrics("13a")
    for corpus in list(CORPORA.values())[rank::2]:
        metrics.update(*corpus)
    results.put(metrics.compute())
    dist.destroy_process_group()


def test_text_metrics_of_two_processes_equal_those_of_one(tmp_path) -> None:
    torch.set_num_threads(1)  # a forked child must not inherit a thread pool
    context = mp.get_context("fork")
    results = context.SimpleQueue()
    processes = [
        context.Process(target=_one_process, args=(rank, str(tmp_path / "meet"), results))
        for rank in (0, 1)
    ]
    for process in processes:
        process.start()
    both = [results.get() for _ in processes]
    for process in processes:
        process.join()
    whole = TextMetrics("13a")
    for corpus in CORPORA.values():
        whole.update(*corpus)
    for computed in both:
        assert computed == pytest.approx(whole.compute(), abs=1e-4)


@pytest.mark.parametrize(
    ("lengths", "buckets"),
    [
        ([7] * 5, [(7, 7)]),
        (range(1, 11), [(n, n) for n in range(1, 11)]),  # ten ranges are not too many, eleven are
        (range(1, 12), [(n, n + 1) for n in range(1, 12, 2)]),
        # 8 lies in 6-10, not at the start of a range
        (range(8, 43), [(n, n + 4) for n in range(6, 42, 5)]),
        ([5, 10, 11, 31], [(1, 5), (6, 10), (11, 15), (31, 35)]),  # 16-20, ... have no sentence
        ([3] * 300 + [900], [(3, 900)]),  # one in 301 is longer: it goes to the last range
        ([4] * 99 + [40], [(1, 5), (36, 40)]),  # one in a hundred counts
        ([0, 1, 2], [(0, 0), (1, 1), (2, 2)]),
        ([1, 10_000], [(1, 1000), (9001, 10_000)]),
        ([1, 10_001], [(1, 1001), (9010, 10_010)]),  # no round width is wide enough
    ],
)
def test_length_buckets_match_hand_made_ones(
    lengths: list[int], buckets: list[tuple[int, int]]
) -> None:
    assert length_buckets(lengths) == buckets


@pytest.mark.parametrize("tokenize", ["13a", "char", "none"])
def test_by_length_bleu_is_the_corpus_bleu_of_each_bucket(tokenize: str) -> None:
    references = ["the cat, sat on the mat", "a dog barked at the man", "yes", "no"] * 3
    hypotheses = ["the cat, sat on a mat", "a dog barked at the man", "yes", "well"] * 3
    lengths = [6, 26, 1, 1] * 3
    table = by_length(lengths, hypotheses, references, tokenize)
    assert [row["sentences"] for row in table] == [6, 3, 3]
    assert table[0]["bleu"] is None  # no reference has four words or characters
    for row, chosen in zip(table[1:], ([0, 4, 8], [1, 5, 9]), strict=True):
        expected = BLEU(tokenize=tokenize, smooth_method="none").corpus_score(
            [hypotheses[i] for i in chosen], [[references[i] for i in chosen]]
        )
        assert row["bleu"] == pytest.approx(expected.score, abs=1e-4)
    assert [row["exact_match"] for row in table] == [0.5, 0.0, 1.0]


def test_by_length_trailing_space_affects_only_exact_match() -> None:
    (row,) = by_length([4], ["a b c d "], ["a b c d"], "13a")
    assert (row["bleu"], row["exact_match"]) == (pytest.approx(100.0), 0.0)


@pytest.mark.parametrize(
    ("hypothesis", "reference", "bleu"),
    [
        ("a b c", "a b c", None),
        ("x", "a b c", None),
        ("a b c d e", "a b c", None),
        ("a b c d", "a b c d", 100.0),
        ("x", "a b c d", 0.0),  # the model's own fault
        ("", "a b c d", 0.0),
    ],
)
def test_by_length_bleu_is_undefined_where_no_reference_has_a_4_gram(
    hypothesis: str, reference: str, bleu: float | None
) -> None:
    (row,) = by_length([3], [hypothesis], [reference], "13a")
    assert row["bleu"] == pytest.approx(bleu)


def test_by_length_uses_given_ranges() -> None:
    texts = ["a b c d", "a b c d e", "a b c d f"]
    table = by_length([4, 5, 5], ["a b c d", "a b c d e", "x"], texts, "none", [(4, 4), (5, 5)])
    found = [(row["from"], row["to"], row["sentences"], row["exact_match"]) for row in table]
    assert found == [(4, 4, 1, 1.0), (5, 5, 2, 0.5)]


@pytest.mark.parametrize(
    ("unit", "hypothesis", "reference", "expected"),
    [
        # Case and punctuation do not count: 2 of 2 and of 3 words, 1 of 1 and of 2 pairs.
        ("word", "The CAT!", "the cat sat.", (200 * 2 / 5, 100 * 2 / 3, 200 * 2 / 5)),
        ("word", "sat the cat", "the cat sat", (100, 50, 200 / 3)),
        ("word", "고양이가 학교에 갔다.", "고양이가 오늘 학교에 갔다", (600 / 7, 40, 600 / 7)),
        ("word", "고양이는", "고양이가", (0, 0, 0)),
        ("character", "고양이는", "고양이가.", (75, 200 / 3, 75)),
        ("word", "\u1100\u1161", "가", (100, 0, 100)),  # two spellings of one syllable
        ("word", "हिन्दी", "हिन्दी में", (200 / 3, 0, 200 / 3)),  # vowel signs are parts of words
        ("word", "", "the cat", (0, 0, 0)),
        ("word", "...", "!", (0, 0, 0)),
    ],
)
def test_rouge_equals_scores_by_hand(
    unit: RougeUnit, hypothesis: str, reference: str, expected: tuple[float, ...]
) -> None:
    metrics = TextMetrics(rouge=unit)
    for _ in range(2):  # a mean over texts
        metrics.update([hypothesis], [reference])
    found = metrics.compute()
    assert [found[key] for key in ROUGE] == pytest.approx(expected, abs=1e-3)
    metrics.reset()
    metrics.update(["same"], ["same"])
    assert metrics.compute()["rougeL"] == 100
