"""What each score aligns, on data whose alignments are known: exact match, alignment error rate, and offsets.

    python pipelines/studies/alignments.py --data reverse

Trains every score of conf/model/attention with several seeds. Writes alignments.png (how far beside the right source
token the attention looks), .csv (a row for each experiment), .md (means over the seeds) and .json (what the figures
stand on).
"""

from __future__ import annotations

from attnlab.experiment.launch import mistakes_as_sentences
from attnlab.stages.alignments import main

if __name__ == "__main__":
    with mistakes_as_sentences():
        main()
