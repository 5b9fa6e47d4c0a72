"""What the pages show of the evaluations of a task: a section of the report, and comparisons."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from matplotlib.figure import Figure

from attnlab.evaluation.attention_map import AttentionMap
from attnlab.evaluation.corpus_metric import CorpusMetric
from attnlab.evaluation.evaluation_files import EvaluationFiles
from attnlab.evaluation.measures import Measure, Measures
from attnlab.plots.heat_map import HeatMap
from attnlab.plots.sentences import coloured_row

# Variables of a section's template, and figures by name.
Content = tuple[dict[str, Any], dict[str, Figure]]


class ReportSection:
    """What the pages show of a task; by default its metrics, and the attention as heat maps.

    sentences_file: of an evaluation folder, one row a sentence.
    source_key, expected_key, answer_key: in such a row, the input, what is right, and what the
        model made of it.
    measures: of its metrics, in the order of the pages; the others follow with their bare names.
    headlines: measures that stand large at the top, if they were measured.
    ranked_by: measures by which a comparison ranks systems, the first that all have.
    sentence_metric: the metric that says how good a single sentence is; None for whether the answer
        is the expected one.
    template: its page, which extends `base.html`; it lies beside the class.
    """

    sentences_file: ClassVar[str] = "predictions.jsonl"
    source_key: ClassVar[str] = "source"
    expected_key: ClassVar[str] = "reference"
    answer_key: ClassVar[str] = "hypothesis"
    measures: ClassVar[tuple[Measure, ...]] = ()
    headlines: ClassVar[tuple[str, ...]] = ()
    ranked_by: ClassVar[tuple[str, ...]] = ()
    sentence_metric: ClassVar[str | None] = None
    template: ClassVar[str] = "base.html"

    @property
    def package(self) -> str:
        """The package that the template lies in."""
        return type(self).__module__.rpartition(".")[0]

    @property
    def known(self) -> Measures:
        """The measures, the costs of a training among them, and which of them ranks systems."""
        return Measures(self.measures, self.ranked_by)

    # The report of one experiment

    def content(self, evaluation: Path, stats: Mapping[str, Any]) -> Content:
        """What the template shows of an evaluation folder.

        stats: of the prepared data, the content of stats.json.
        """
        return {}, {}

    # Comparisons of several

    def metrics_of(
        self, evaluations: Sequence[EvaluationFiles]
    ) -> list[Mapping[str, CorpusMetric]]:
        """For each evaluation the metrics that follow from its sentences, for resampling.

        Evaluations may share them.
        """
        return [{} for _ in evaluations]

    def test_set(self, evaluation: EvaluationFiles) -> str:
        """A digest of inputs and expected outputs; runs that share it used the same sentences."""
        texts = [[row[self.source_key], row[self.expected_key]] for row in evaluation.sentences]
        return hashlib.sha256(json.dumps(texts).encode()).hexdigest()

    def maps_by_source(self, evaluation: EvaluationFiles) -> dict[str, AttentionMap]:
        """{the source's text: its map}; not its tokens, because systems may tokenise differently.

        An older evaluation does not say which sentences its maps belong to (see `guessed_sources`).
        """
        rows = evaluation.map_rows
        if rows is None:
            sources = self.guessed_sources(evaluation)
        else:
            sources = [evaluation.sentences[row][self.source_key] for row in rows]
        return dict(zip(sources, evaluation.maps, strict=True))

    def guessed_sources(self, evaluation: EvaluationFiles) -> list[str]:
        """The source's text of each map, as far as the map itself shows it.

        By default its tokens with spaces between them.
        """
        sources = []
        for each in evaluation.maps:
            tokens = [token for token in each.source_tokens if token != "<eos>"]
            sources.append(" ".join(tokens))
        return sources

    def drawn(self, attention: AttentionMap, row: Mapping[str, Any]) -> dict[str, Any]:
        """What a comparison shows of a map: `heat_map`, or `row`, a coloured sentence."""
        if len(attention.target_tokens) == 1:
            return {"row": coloured_row(attention)}
        return {"text": row.get(self.answer_key), "heat_map": HeatMap.of(attention)}


def drawn_rows(rows: Sequence[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """The same few rows each time, in their order."""
    chosen = random.Random(0).sample(range(len(rows)), min(count, len(rows)))
    return [rows[number] for number in sorted(chosen)]
