"""A search works where the source is: see tests/model/test_devices.py."""

from __future__ import annotations

import pytest
import torch

from attnlab.search.beam import BeamSearch
from attnlab.search.ensemble import Ensemble
from attnlab.search.greedy import GreedySearch
from attnlab.search.sample import SampleSearch
from attnlab.search.search import BLOCK, topk_by_blocks

SEARCHES = {
    "greedy": GreedySearch(6, 1.5, min_length=1),
    "beam": BeamSearch(3, 0.6, 6, 1.5, coverage_penalty=0.2, min_length=1, n_best=3),
    "sample": SampleSearch(0.8, 4, 0.9, 1, 6, 1.5, n_best=3),
}


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
@pytest.mark.parametrize("several", [False, True], ids=["one", "ensemble"])
def test_search_runs_on_the_device_of_its_source(several, search, searchable):
    model, source, mask = searchable()
    model = Ensemble([model, model]) if several else model
    here = search(model, source, mask, with_attention=True)
    with torch.device("meta"):
        there = search(model, source, mask, with_attention=True)
    assert [[h.tokens for h in row] for row in there] == [[h.tokens for h in row] for row in here]
    assert all(h.attention_weights.device == source.device for row in there for h in row)


def test_topk_by_blocks_stays_on_its_device():
    scores = torch.arange(4.0 * BLOCK + 3).unsqueeze(0)
    with torch.device("meta"):
        values, places = topk_by_blocks(scores, 2)
    assert values.tolist() == [[4 * BLOCK + 2, 4 * BLOCK + 1]]
    assert places.device == scores.device
