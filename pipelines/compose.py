"""Compose: the choices of params.yaml -> build/resolved.yaml, the one config that all later stages read.

    python pipelines/compose.py [overrides, which go before the choices of params.yaml]
    python pipelines/compose.py into=attentions/build/dot-1 model/attention=dot seed=1

`into` is the folder of the result, and of the outputs of the stages that read it. The data lie beside it, in
attentions/build/data, and are shared by all that are composed there.
`dvc repro` composes nothing by itself, so this stage does; each later stage depends on its own sections of the result.
"""

from __future__ import annotations

from attnlab.experiment.console import mistakes_as_sentences
from attnlab.stages.compose import main

if __name__ == "__main__":
    with mistakes_as_sentences():
        main()
