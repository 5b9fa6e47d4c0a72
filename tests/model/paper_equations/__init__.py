"""The models' equations in NumPy and float64, written from the papers.

One sentence and one step at a time.

No batch, no mask, no padding: what a padded batch gives must equal this. Weights come by the names
of a `state_dict`. Positions i and t count from 0.
"""

from paper_equations.attention import Attention, attend
from paper_equations.bridges import BRIDGES
from paper_equations.cells import State, part, weights_of
from paper_equations.encoder import Encoded, encode
from paper_equations.normalisers import NORMALISERS, log_softmax, softmax, sparsemax
from paper_equations.orderless import averaging, bag_of_words, convolutional
from paper_equations.readouts import READOUTS
from paper_equations.scores import CONTENT_SCORES, delta_rule, location
from paper_equations.sentence import Model

__all__ = [
    "BRIDGES",
    "CONTENT_SCORES",
    "NORMALISERS",
    "READOUTS",
    "Attention",
    "Encoded",
    "Model",
    "State",
    "attend",
    "averaging",
    "bag_of_words",
    "convolutional",
    "delta_rule",
    "encode",
    "location",
    "log_softmax",
    "part",
    "softmax",
    "sparsemax",
    "weights_of",
]
