"""What every teacher-forcing schedule is, and the coins it tosses."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor


class TeacherForcing(ABC):
    """The probability, at each training step, that the decoder is fed the reference and not its own guess."""

    @abstractmethod
    def ratio(self, step: int) -> float:
        """The probability at optimiser step `step`, between 0 and 1."""

    def toss(self, step: int, mask: Tensor) -> Tensor | None:
        """A coin for every token (Bengio et al. 2015, section 2.4): (B, T) bool, True feeds the reference.

        None, where the reference is always fed, spares the model its guesses.
        """
        ratio = self.ratio(step)
        if ratio == 1:
            return None
        return torch.rand(mask.shape, device=mask.device) < ratio
