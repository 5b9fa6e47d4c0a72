"""The kinds of studies that have pages, and the rules of their verdicts."""

from __future__ import annotations

from dataclasses import dataclass

from attnlab.studies import museum


@dataclass(frozen=True)
class Kind:
    """A kind of studies, which share a page.

    rule: how their verdicts follow from what was measured.
    effect: what the first column of a table of expectations has.
    introduction: what stands before the rule; empty for nothing.
    shows_faults: whether each study is of the fault that has its name.
    pages: the folder of its studies' own pages, to which the common one leads; empty for none.
    """

    title: str
    rule: str
    effect: str
    introduction: str = ""
    shows_faults: bool = False
    pages: str = ""


_PAIRING = (
    "Differences of one model's own measures are paired by seed, others are of independent seeds."
)
_TESTS = (
    "Below six seeds they are compared with Student's t (paired, or Welch's), from six on exactly, "
    "by all flips of signs or permutations of the seeds. A system whose seeds are all alike is "
    "taken to scatter as the one that it is compared with. Where neither does, nothing is decided, "
    "except of independent seeds that are enough to tell the two apart without a scatter, five and "
    "five for example; nothing is decided with fewer than three seeds. Where the test sentences "
    "were resampled, their scatter counts too, with one degree of freedom less than there are "
    "sentences; the column *tested by* says so. p values are two-sided, and always of the side "
    "that the difference lies on. Means alike within a bound: two one-sided tests, shown with the "
    "interval of 90 %; all other intervals are of 95 %. p values of primary expectations are "
    "corrected by Holm's method over all primary ones of a family, the studies that one commit "
    "registered together (*Holm*); a question that is revised later stays in its family. Those of "
    "studies that were not run yet count as 1, so that no later run takes a verdict back. Outcomes "
    "are those after the correction; other expectations have their interval and their own p, and "
    "decide nothing."
)

# By the folder of the studies.
KINDS = {
    "claims": Kind(
        title="The lessons' claims, tested",
        rule="Each claim is judged by its primary expectations, which stand in "
        "`pipelines/studies/claims`. It *holds* where all of them do, *does not hold* where some "
        "do not and none does, *depends on* what they differ in where some do and some do not, and "
        f"is *undecided* else. {_PAIRING} {_TESTS}",
        effect="expectation",
    ),
    "replications": Kind(
        title="Published results, replicated",
        rule="Each card stands in `pipelines/studies/replications`, with the published figures, "
        "their tolerance and the published effects. *Reproduced*: the published setup was run, and "
        "the mean over the seeds is within the tolerance of every figure, or better. *Direction "
        "reproduced*: every primary effect holds. *Contradicted*: in the published setup a primary "
        "effect does not hold, or, without effects, a figure is missed by our whole interval. "
        "*Not comparable*: in another setup no effect is named, or one does not hold. Else "
        "*undecided*. "
        f"{_PAIRING} {_TESTS}",
        effect="published effect",
    ),
    "museum": Kind(
        title="The museum of mistakes",
        rule="## How it was measured\n\nEach mistake has a study in `pipelines/studies/museum`: a "
        "model with it and one without, which start with the same weights and read the same "
        "batches; `replicate.py museum` runs all of them. Its primary expectation says what the "
        "mistake costs. It *holds* where the cost is certain, *does not hold* where the faulty "
        "model is certainly the better one, and is *undecided* else: a cost that five seeds do not "
        "show. All differences are paired by seed; studies whose right model is the same one share "
        "its five trainings. "
        f"{_TESTS}",
        effect="what it costs",
        introduction=museum.INTRODUCTION,
        shows_faults=True,
    ),
    "questions": Kind(
        title="Questions about attention",
        rule="Each study stands in `pipelines/studies/questions`; its page names the commit that "
        "registered it. Its primary expectations decide: it *holds* where all of them do, *does "
        "not hold* where some do not and none does, *depends on* what they differ in where some do "
        "and some do not, and is *undecided* else. "
        f"{_PAIRING} {_TESTS}",
        effect="expectation",
        introduction="Questions of our own, each on a page: why it is asked, how it was measured, "
        "what was found, and what the result does not say.",
        pages="questions",
    ),
}
