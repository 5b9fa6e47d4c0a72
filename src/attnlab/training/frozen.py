"""Parts of a model whose weights stay as the training begins with them."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from attnlab.errors import ExperimentError, show


def freeze(model: nn.Module, names: Sequence[str]) -> None:
    """Leave the weights of these parts out of the training.

    Gradients pass through the parts to others.

    names: of modules or weights, with dots: `encoder`, `decoder.attention.score`.

    Raises ExperimentError for a name of no part, a part without weights of its own, and where
    nothing is left to train.
    """
    modules = dict(model.named_modules(remove_duplicate=False))
    weights = dict(model.named_parameters(remove_duplicate=False))
    problems = []
    for name in names:
        if name in weights:
            weights[name].requires_grad_(False)
        elif name in modules:
            if not list(modules[name].parameters()):
                problems.append(f"training.frozen names {show(name)}, which has no weights")
            modules[name].requires_grad_(False)
        else:
            known = [part for part in modules if part and part.count(".") < 2]
            problems.append(
                f"training.frozen must name parts of the model ({', '.join(known)}, and what is in "
                f"them), got {show(name)}"
            )
    if problems:
        raise ExperimentError(problems)
    if names and not any(parameter.requires_grad for parameter in weights.values()):
        raise ExperimentError(
            f"training.frozen names all parts that have weights ({', '.join(names)}), so that "
            "nothing is left to train"
        )
