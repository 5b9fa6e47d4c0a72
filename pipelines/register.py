"""Register: the model of a run, or of the best run of a sweep, under a name and an alias in MLflow's model registry.

    python pipelines/register.py sweep=last
    python pipelines/register.py run=<MLflow run id> name=dates alias=champion

The best run of a sweep is the one with the best validation value of what training monitored: a model that was chosen by
its test score could not be judged by it any more. Afterwards, from anywhere:

    import mlflow
    mlflow.set_tracking_uri("sqlite:///runs/mlflow.db")
    print(mlflow.pyfunc.load_model("models:/attnlab@champion").predict(["Wednesday, January 13, 2010"]))
"""

from __future__ import annotations

import sys

from attnlab.experiment.command_settings import RegisterSettings, read_settings
from attnlab.experiment.launch import mistakes_as_sentences

if __name__ == "__main__":
    with mistakes_as_sentences():
        settings = read_settings(RegisterSettings, sys.argv[1:])
        from attnlab.stages.register import main

        main(settings)
