"""A mode of torch in which another product takes the place of `linear`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor
from torch.nn.functional import linear
from torch.overrides import TorchFunctionMode


class LinearMode(TorchFunctionMode):
    """Within it, every call of torch's `linear` is one of `product`.

    Every other call of torch costs a little more, too.
    """

    def product(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """x W^T + b: x (..., I), weight (O, I), bias (O,) -> (..., O)."""
        raise NotImplementedError

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: Any = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        return (self.product if func is linear else func)(*args, **(kwargs or {}))
