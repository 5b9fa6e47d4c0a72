"""Show what `dvc repro` made: the metrics, the report, and how to open MLflow.

python pipelines/show.py
"""

from __future__ import annotations

from attnlab.experiment.launch import mistakes_as_sentences

if __name__ == "__main__":
    with mistakes_as_sentences():
        from attnlab.stages.report import show

        show()
