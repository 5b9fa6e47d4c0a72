"""The vanishing-gradient picture: how much of the loss gradient reaches each encoder state, by its distance.

    python pipelines/studies/vanishing_gradients.py

A plain RNN and an LSTM in one direction, with and without attention, at initialisation and after a training on
sequences to copy. Writes vanishing_gradients.png, .csv and .json (what the figures stand on). What is measured, says
attnlab.evaluation.gradient_flow.
"""

from __future__ import annotations

from attnlab.experiment.launch import mistakes_as_sentences
from attnlab.stages.vanishing_gradients import main

if __name__ == "__main__":
    with mistakes_as_sentences():
        main()
