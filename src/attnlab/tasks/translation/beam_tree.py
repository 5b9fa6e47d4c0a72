"""The partial hypotheses of a beam search as a tree.

Axes: K beam, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from attnlab.batch import EOS
from attnlab.errors import ExperimentError
from attnlab.model.attention.intervention import Intervention
from attnlab.search.beam import BeamSearch
from attnlab.search.search import Hypothesis, next_log_probs, topk_by_blocks
from attnlab.tasks.requests import NO_CHANGE
from attnlab.tasks.translation.analysis import NO_EDIT, Edit, Source, text_of
from attnlab.tasks.translation.intervened import Intervened
from attnlab.tasks.translation.posterior import with_posteriors
from attnlab.tasks.translation.translator import Translator

MAX_BEAM_SIZE = 20


@dataclass(frozen=True)
class TrackedState:
    """A decoder's state, and the tree's node that each of its rows has reached."""

    inner: Any
    nodes: list[int | None]  # None of a row that only fills the beam, with a probability of 0

    def select(self, rows: Tensor) -> TrackedState:
        return TrackedState(self.inner.select(rows), [self.nodes[row] for row in rows.tolist()])


@dataclass
class BeamRecorder:
    """A model for one sentence that records the tree of a beam search.

    nodes: of the tree; each is the token that ends a partial hypothesis.
    node_of: (parent, token) -> the number of a node.
    """

    model: Intervened
    search: BeamSearch
    forced: Mapping[int, int]
    nodes: list[dict[str, Any]] = field(default_factory=list)
    node_of: dict[tuple[int, int], int] = field(default_factory=dict)

    def encode(self, source: Tensor, source_mask: Tensor) -> tuple[Any, TrackedState]:
        """The memory and the first state of the model, at the root of a new tree."""
        memory, state = self.model.encode(source, source_mask)
        root = self._add(parent=None, token=None, log_prob=0.0, status="kept")
        return memory, TrackedState(state, [root])

    def step(
        self, tokens: Tensor, state: TrackedState, memory: Any
    ) -> tuple[Tensor, TrackedState, Tensor | None]:
        """Logits (K, V), state and weights of the model's step; its candidates join the tree."""
        # 1. The rows are the hypotheses that the search kept; at first, there is the empty one.
        nodes = state.nodes
        if len(self.nodes) > 1:
            nodes = [
                self._kept(parent, token)
                for parent, token in zip(state.nodes, tokens.tolist(), strict=True)
            ]

        # 2. The step itself.
        logits, inner, weights = self.model.step(tokens, state.inner, memory)

        # 3. The candidates among which the search now chooses.
        self._add_candidates(nodes, logits.clone())
        return logits, TrackedState(inner, nodes), weights

    def _kept(self, parent: int | None, token: int) -> int | None:
        """The node of a row that the search kept.

        None of a row with a probability of 0, which is no candidate: the search fills its beam with
        such rows where it may write fewer tokens than the beam is wide, after a forced one.
        """
        if parent is None or (parent, token) not in self.node_of:
            return None
        node = self.node_of[parent, token]
        self.nodes[node]["status"] = "kept"
        return node

    def _add_candidates(self, nodes: list[int | None], logits: Tensor) -> None:
        """Add the best tokens after each of these nodes, as the search ranks them.

        logits: (K, V), which are written over.
        """
        step = 1 + max(int(self.nodes[node]["step"]) for node in nodes if node is not None)
        may_end = step >= self.search.min_length
        log_probs = next_log_probs(logits, may_end, self.forced.get(step))  # (K, V)
        reached = [-math.inf if node is None else self.nodes[node]["log_prob"] for node in nodes]
        before = log_probs.new_tensor(reached)  # (K,)
        sums = log_probs + before.unsqueeze(1)

        # One hypothesis has one <eos>, so 2 K candidates hold K that go on.
        count = min(2 * self.search.size, sums.numel())
        best, places = topk_by_blocks(sums.flatten().unsqueeze(0), count)
        candidates = zip(best[0].tolist(), places[0].tolist(), strict=True)
        for rank, (log_prob, place) in enumerate(candidates):
            if not math.isfinite(log_prob):
                continue  # a token that the search may not write
            row, token = divmod(place, log_probs.shape[1])
            # The search ends a hypothesis only where <eos> is among the best K.
            ends = token == EOS and rank < self.search.size
            self._add(nodes[row], token, log_prob, status="finished" if ends else "pruned")

    def _add(self, parent: int | None, token: int | None, log_prob: float, status: str) -> int:
        """Add a node; its log-probability is that of the whole partial hypothesis, in nats."""
        step = -1 if parent is None else self.nodes[parent]["step"] + 1
        number = len(self.nodes)
        self.nodes.append(
            {"parent": parent, "token": token, "step": step, "log_prob": log_prob, "status": status}
        )
        if parent is not None and token is not None:
            self.node_of[parent, token] = number
        return number

    def last_node(self, hypothesis: Hypothesis) -> int:
        """The node of the last token of a hypothesis."""
        node = 0
        for token in hypothesis.tokens:
            node = self.node_of[node, token]
        if hypothesis.finished:
            node = self.node_of[node, EOS]
        return node


@torch.no_grad()
def beam(
    translator: Translator,
    text: str,
    settings: Mapping[str, Any] | None = None,
    intervene: Intervention = NO_CHANGE,
    edit: Edit = NO_EDIT,
) -> dict[str, Any]:
    """Every partial hypothesis that a beam search ranked.

    Args:
        settings: of the beam search, as a `Translator` takes them; all of its hypotheses come back.

    Returns:
        nodes: parent, token, step, log_prob, and status: kept, pruned, finished, or cut_off by the
            length limit. The first node is the empty hypothesis. Of each step, the best 2 K
            candidates are there.
        hypotheses: node, text, log_prob, length and score of each result, best first.
        length_penalty: that of the score.
    """
    model = translator.intervened(intervene)
    source = Source.read(translator, text, edit, model.intervention)
    search = _beam_search(translator, settings or {})
    forced = translator.forced(intervene)
    recorder = BeamRecorder(model, search, forced)
    batch = source.batch([])
    (found,) = search(
        recorder,
        batch.source,
        batch.source_mask,
        with_attention=search.coverage_penalty > 0 or search.replace_unknown,
        forced=forced,
    )
    (found,) = with_posteriors(
        translator.model, batch.source, batch.source_mask, [found], model.intervention
    )

    hypotheses = []
    for hypothesis in found:
        node = recorder.last_node(hypothesis)
        if not hypothesis.finished:
            recorder.nodes[node]["status"] = "cut_off"
        hypotheses.append(
            {
                "node": node,
                "text": text_of(translator, search, hypothesis, source),
                "log_prob": recorder.nodes[node]["log_prob"],
                "length": len(hypothesis.tokens) + hypothesis.finished,
                "score": hypothesis.score,
            }
        )

    root, *others = recorder.nodes
    names = translator.target_tokenizer.tokens([node["token"] for node in others])
    nodes = [{**root, "token": ""}]
    for other, name in zip(others, names, strict=True):
        nodes.append({**other, "token": name})
    return {
        "nodes": nodes,
        "hypotheses": hypotheses,
        "length_penalty": search.length_penalty,
        "size": search.size,
    }


def _beam_search(translator: Translator, settings: Mapping[str, Any]) -> BeamSearch:
    """The beam search with these settings, which returns all of its hypotheses."""
    settings = {"search": "beam", **settings}
    # The model's own search may return more hypotheses than this beam has.
    size = getattr(translator.search({**settings, "n_best": 1}), "size", 1)
    search = translator.search({**settings, "n_best": size})
    if not isinstance(search, BeamSearch) or search.size > MAX_BEAM_SIZE:
        raise ExperimentError(
            f"the tree is that of a beam search whose size is at most {MAX_BEAM_SIZE}"
        )
    return search
