"""The kinds of studies that have pages, and the rules of their verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from attnlab.studies import museum


@dataclass(frozen=True)
class Kind:
    """A kind of studies, which share a page.

    introduction: what the page is about.
    verdicts: {a verdict: when it is given}.
    tests: how differences are compared, a paragraph each.
    effect: what the first column of a table of expectations has.
    shows_faults: whether each study is of the fault that has its name.
    shows_lessons: whether each study tests what a lesson of the course says.
    pages: the folder of its studies' own pages, to which the common one leads; empty for none.
    """

    title: str
    introduction: str
    verdicts: Mapping[str, str]
    tests: tuple[str, ...]
    effect: str
    shows_faults: bool = False
    shows_lessons: bool = False
    pages: str = ""


_BY_SEED = (
    "**Pairs.** Differences of one model's own measures are paired by seed, others are of "
    "independent seeds."
)
_TESTS = (
    "**Tests.** Below six seeds Student's t compares them (paired, or Welch's), from six on an "
    "exact test by all flips of signs or permutations of the seeds. p values are two-sided, and "
    "always of the side that the difference lies on. Nothing is decided with fewer than three "
    "seeds.",
    "**Seeds that are all alike.** Such a system is taken to scatter as the one that it is "
    "compared with. Where neither scatters, nothing is decided, except of independent seeds that "
    "are enough to tell the two apart without a scatter, five and five for example.",
    "**Sentences.** Where the test sentences were resampled, their scatter counts too, with one "
    "degree of freedom less than there are sentences. The column *tested by* says so.",
    "**Means alike within a bound.** Two one-sided tests decide, shown with the interval of 90 %. "
    "All other intervals are of 95 %.",
    "**Several questions at once.** p values of primary expectations are corrected by Holm's "
    "method over all primary ones of a family, the studies that one commit registered together "
    "(*Holm*). A question that is revised later stays in its family. Those of studies that were "
    "not run yet count as 1, so that no later run takes a verdict back. Outcomes are those after "
    "the correction. Other expectations have their interval and their own p, and decide nothing.",
)
_OF_EXPECTATIONS = {
    "holds": "all primary expectations do.",
    "does not hold": "some primary expectations do not, and none does.",
    "depends on": "some primary expectations hold and some do not; the verdict says what they "
    "differ in.",
    "undecided": "these seeds do not tell. It does not mean that there is no difference.",
}

# By the folder of the studies.
KINDS = {
    "claims": Kind(
        title="The lessons' claims, tested",
        introduction="What lectures say about attention, each claim tested by an experiment of "
        "its own. Its primary expectations, in **bold** below, decide; they stand in "
        "`pipelines/studies/claims`.",
        verdicts=_OF_EXPECTATIONS,
        tests=(_BY_SEED, *_TESTS),
        effect="expectation",
        shows_lessons=True,
    ),
    "replications": Kind(
        title="Published results, replicated",
        introduction="Results of papers, measured anew. A card in "
        "`pipelines/studies/replications` has the published figures, how far off they may be, and "
        "the published effects; the primary ones are in **bold** below.",
        verdicts={
            "reproduced": "the published setup was run, and the mean over the seeds is within the "
            "tolerance of every figure, or better.",
            "direction reproduced": "every primary effect holds.",
            "contradicted": "in the published setup a primary effect does not hold, or, without "
            "effects, a figure is missed by our whole interval.",
            "not comparable": "in another setup no effect is named, or one does not hold.",
            "undecided": "else.",
        },
        tests=(_BY_SEED, *_TESTS),
        effect="published effect",
    ),
    "museum": Kind(
        title="The museum of mistakes",
        introduction=museum.INTRODUCTION,
        verdicts={
            "holds": "the cost is certain.",
            "does not hold": "the faulty model is certainly the better one.",
            "undecided": "five seeds do not show a cost.",
        },
        tests=(
            "**Pairs.** Each mistake has a study in `pipelines/studies/museum`: a model with it "
            "and one without, which start with the same weights and read the same batches; "
            "`replicate.py museum` runs all of them. All differences are paired by seed; studies "
            "whose right model is the same one share its five trainings. A primary expectation "
            "says what the mistake costs.",
            *_TESTS,
        ),
        effect="what it costs",
        shows_faults=True,
    ),
    "questions": Kind(
        title="Questions about attention",
        introduction="Questions of our own, each on a page: why it is asked, how it was measured, "
        "what was found, and what the result does not say. Each study stands in "
        "`pipelines/studies/questions`; its page names the commit that registered it. Its primary "
        "expectations decide.",
        verdicts=_OF_EXPECTATIONS,
        tests=(_BY_SEED, *_TESTS),
        effect="expectation",
        pages="questions",
    ),
}
