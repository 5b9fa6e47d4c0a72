"""Train the experiments of a study with several seeds, and say what became of a claim or of a published result.

    python pipelines/replicate.py 01_bottleneck
    python pipelines/replicate.py scan --seeds 5 data.path=<folder with the corpora>
    python pipelines/replicate.py my_study.yaml

The studies are the files of pipelines/studies. Writes runs/studies/<name> (rows.csv, figure.png, result.json), and the
page of all claims, or of all replications, beside it. What is trained already is not trained again.
"""

from __future__ import annotations

from attnlab.experiment.launch import mistakes_as_sentences

if __name__ == "__main__":
    with mistakes_as_sentences():
        from attnlab.stages.study import main

        main()
