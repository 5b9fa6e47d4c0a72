"""The partial hypotheses of a beam search as a tree.

Axes: K beam, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from attnlab.batch import EOS
from attnlab.errors import ExperimentError
from attnlab.explorer.analysis import NO_EDIT, Edit, Source
from attnlab.inference.requests import NO_CHANGE
from attnlab.inference.translator import Intervened, Translator
from attnlab.model.attention.intervention import Intervention
from attnlab.search.beam import BeamSearch
from attnlab.search.search import Hypothesis, likeliest, next_log_probs

WIDEST = 20


@dataclass(frozen=True)
class TrackedState:
    """A decoder's state, and the node of the tree that each of its rows has reached."""

    inner: Any
    nodes: list[int]

    def select(self, rows: Tensor) -> TrackedState:
        return TrackedState(self.inner.select(rows), [self.nodes[row] for row in rows.tolist()])


@dataclass
class BeamRecorder:
    """A model for one sentence that records which hypotheses a beam search extends, and with which
    tokens.
    """

    model: Intervened
    search: BeamSearch
    forced: Mapping[int, int]
    nodes: list[dict[str, Any]] = field(default_factory=list)
    extended: dict[tuple[int, int], int] = field(default_factory=dict)  # (parent, token) -> node

    def encode(self, source: Tensor, source_mask: Tensor) -> tuple[Any, TrackedState]:
        memory, state = self.model.encode(source, source_mask)
        return memory, TrackedState(state, [self._add(None, None, 0.0, "kept")])

    def step(
        self, tokens: Tensor, state: TrackedState, memory: Any
    ) -> tuple[Tensor, TrackedState, Tensor | None]:
        # 1. The rows are the hypotheses that the search kept; the first one is the empty one.
        rows = state.nodes
        if len(self.nodes) > 1:
            rows = [
                self.extended[parent, token]
                for parent, token in zip(rows, tokens.tolist(), strict=True)
            ]
            for node in rows:
                self.nodes[node]["status"] = "kept"
        logits, inner, weights = self.model.step(tokens, state.inner, memory)
        # 2. The candidates among which the search now chooses, as it ranks them.
        step = int(self.nodes[rows[0]]["step"]) + 1
        own = next_log_probs(logits.clone(), step >= self.search.min_length, self.forced.get(step))
        sums = own + own.new_tensor([self.nodes[node]["log_prob"] for node in rows]).unsqueeze(1)
        top, places = likeliest(
            sums.flatten().unsqueeze(0), min(2 * self.search.size, sums.numel())
        )
        for rank, (log_prob, place) in enumerate(
            zip(top[0].tolist(), places[0].tolist(), strict=True)
        ):
            row, token = divmod(place, own.shape[1])
            if log_prob > -torch.inf:
                ended = token == EOS and rank < self.search.size
                self._add(rows[row], token, log_prob, "finished" if ended else "pruned")
        return logits, TrackedState(inner, rows), weights

    def _add(self, parent: int | None, token: int | None, log_prob: float, status: str) -> int:
        """A node; its log-probability is that of the whole partial hypothesis, in nats."""
        step = -1 if parent is None else self.nodes[parent]["step"] + 1
        self.nodes.append(
            {"parent": parent, "token": token, "step": step, "log_prob": log_prob, "status": status}
        )
        if parent is not None and token is not None:
            self.extended[parent, token] = len(self.nodes) - 1
        return len(self.nodes) - 1

    def end_of(self, hypothesis: Hypothesis) -> int:
        """The node of the last token of a hypothesis."""
        node = 0
        for token in [*hypothesis.tokens, *[EOS] * hypothesis.finished]:
            node = self.extended[node, token]
        return node


@torch.no_grad()
def beam(
    translator: Translator,
    text: str,
    settings: Mapping[str, Any] | None = None,
    intervene: Intervention = NO_CHANGE,
    edit: Edit = NO_EDIT,
) -> dict[str, Any]:
    """Every partial hypothesis that a beam search looked at.

    Args:
        settings: of the beam search, as a `Translator` takes them; all of its hypotheses come back.

    Returns:
        nodes: parent, token, step, log_prob, and status: kept, pruned, finished, or cut_off by the
            length limit. The first node is the empty hypothesis. Of each step, the best 2 K
            candidates are there.
        hypotheses: node, text, log_prob, length and score of each result, best first.
        length_penalty: that of the score.
    """
    source = Source.read(translator, text, edit, intervene)
    given = {"search": "beam", **(settings or {})}
    size = given.get("size", given.get("beam", getattr(translator.search(given), "size", 1)))
    search = translator.search({**given, "n_best": size})
    if not isinstance(search, BeamSearch) or search.size > WIDEST:
        raise ExperimentError(f"the tree is that of a beam search whose size is at most {WIDEST}")
    recorder = BeamRecorder(translator.intervened(intervene), search, translator.forced(intervene))
    batch = source.batch([])
    (found,) = search(
        recorder, batch.source, batch.source_mask, search.coverage_penalty > 0, recorder.forced
    )
    hypotheses = []
    for hypothesis in found:
        end = recorder.end_of(hypothesis)
        if not hypothesis.finished:
            recorder.nodes[end]["status"] = "cut_off"
        hypotheses.append(
            {
                "node": end,
                "text": translator.target_tokenizer.decode(hypothesis.tokens),
                "log_prob": recorder.nodes[end]["log_prob"],
                "length": len(hypothesis.tokens) + hypothesis.finished,
                "score": hypothesis.score,
            }
        )
    names = translator.target_tokenizer.tokens([node["token"] or 0 for node in recorder.nodes])
    nodes = [
        {**node, "token": name} for node, name in zip(recorder.nodes, ["", *names[1:]], strict=True)
    ]
    return {
        "nodes": nodes,
        "hypotheses": hypotheses,
        "length_penalty": search.length_penalty,
        "size": search.size,
    }
