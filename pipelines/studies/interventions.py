"""What attention is worth: quality with the attention as trained, uniform, permuted and hidden.

    python pipelines/studies/interventions.py --data dates

Trains some scores of conf/model/attention with several seeds, and translates the test split four times with each model.
Writes interventions.png (BLEU and exact match of each score), .csv (a row for each model and intervention), .md (means
over the seeds) and .json (what the figures depend on).
"""

from __future__ import annotations

from attnlab.experiment.launch import mistakes_as_sentences
from attnlab.stages.interventions import main

if __name__ == "__main__":
    with mistakes_as_sentences():
        main()
