"""The length curve: quality by source length, with and without attention, far beyond the lengths of the training.

    python pipelines/studies/length_curve.py

After figure 2 of Bahdanau et al. 2015 and Cho et al. 2014 ("On the properties of neural machine translation"), on
sequences to copy. Writes length_curve.png, .csv and .json (what the figures stand on).
"""

from __future__ import annotations

from attnlab.experiment.launch import mistakes_as_sentences
from attnlab.stages.length_curve import main

if __name__ == "__main__":
    with mistakes_as_sentences():
        main()
