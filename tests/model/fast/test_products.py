"""Products of any layout against torch's own."""

from __future__ import annotations

import time
import timeit

import pytest
import torch
from torch.nn.functional import linear

from attnlab.model.fast import products
from attnlab.model.fast.products import product


@pytest.fixture(params=["on Intel's processors", "on others", "without oneDNN"])
def every_way(request, monkeypatch):
    monkeypatch.setattr(products, "is_intel", lambda: request.param == "on Intel's processors")
    if request.param == "without oneDNN":
        monkeypatch.setattr(products, "has_onednn", lambda *_: False)


@pytest.mark.processor
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("turned", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rows", [0, 1, 7])
def test_product_of_any_layout_equals_torchs_linear(dtype, turned, bias, rows, every_way):
    """Transposed views too, as the gradients of a linear layer take them."""
    random = torch.Generator().manual_seed(0)

    def matrix(height: int, width: int) -> torch.Tensor:
        if turned:
            return torch.randn(width, height, generator=random).to(dtype).t()
        return torch.randn(height, width, generator=random).to(dtype)

    x, weight = matrix(rows, 33), matrix(21, 33)
    b = torch.randn(21, generator=random).to(dtype) if bias else None
    with torch.no_grad():
        expected = linear(x.double(), weight.double(), None if b is None else b.double())
        found = product(x, weight, b)
    assert found.dtype == dtype
    tolerance = {torch.float32: 1e-5, torch.float64: 1e-13, torch.bfloat16: 0.1}[dtype]
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=tolerance)


@pytest.mark.processor
@pytest.mark.parametrize("is_intel", [False, True])
def test_product_in_float32_is_onednns_but_on_intels_processors(is_intel, monkeypatch):
    if not products.has_onednn():
        pytest.skip("this torch comes without oneDNN")
    asked = []
    monkeypatch.setattr(products, "is_intel", lambda: is_intel)
    monkeypatch.setattr(products, "linear", lambda *given: asked.append(given) or linear(*given))
    assert product(torch.ones(2, 3), torch.ones(4, 3)).tolist() == [[3.0] * 4] * 2
    assert bool(asked) == is_intel


@pytest.mark.processor
def test_product_with_a_slice_of_columns_takes_no_longer_than_with_a_copy(monkeypatch):
    """oneDNN takes a thousand times as long, and so did the gradients of several heads."""
    monkeypatch.setattr(products, "is_intel", lambda: False)

    def least_seconds(weight: torch.Tensor) -> float:
        return min(
            timeit.repeat(
                lambda: product(torch.ones(64, 64), weight), number=1, timer=time.process_time
            )
        )

    columns = torch.ones(128, 512)[:, :64]
    assert least_seconds(columns) < 30 * least_seconds(columns.contiguous())
