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

from attnlab.experiment.console import mistakes_as_sentences
from attnlab.stages.register import main

if __name__ == "__main__":
    with mistakes_as_sentences():
        main()
