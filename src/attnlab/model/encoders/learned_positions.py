"""Learned positions: a vector for each place of a source, for encoders that read no order."""

from __future__ import annotations

from torch import Tensor, nn

from attnlab.errors import ExperimentError
from attnlab.model.attention.memory import count_positions


class LearnedPositions(nn.Module):
    """A vector p_j for position j, learned as the vectors of tokens are.

    Gehring et al. 2017, "Convolutional Sequence to Sequence Learning", section 3.1.

    Args:
        longest: the number of positions.
        size: width E of the vectors.
    """

    def __init__(self, longest: int, size: int) -> None:
        super().__init__()
        self.longest = longest
        self.vectors = nn.Embedding(longest, size)

    def forward(self, real: Tensor) -> Tensor:
        """The vector of each token's position, counted over the real tokens from 0 on.

        Raises ExperimentError for a source with more tokens than there are positions.

        Args:
            real: (B, S) bool, True at tokens that are read; elsewhere the vectors mean nothing.

        Returns:
            (B, S, E).
        """
        positions = count_positions(real).masked_fill(~real, 0)  # a pad may stand beyond the last
        # A row that is short enough needs no look at its numbers, for which a GPU would wait.
        if real.shape[1] > self.longest:
            self._check(int(positions.max()) + 1)
        vectors: Tensor = self.vectors(positions)
        return vectors

    def _check(self, length: int) -> None:
        if length > self.longest:
            raise ExperimentError(
                f"model.encoder.longest is {self.longest}, but a source of {length} tokens "
                "(`<eos>` included) was met; raise it and train anew, or give shorter sources"
            )
