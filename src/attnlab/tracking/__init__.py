"""MLflow: where a run's params, metrics, pictures and model go.

The only package that imports mlflow, and always from the main process: a run that trains in forked processes
writes metrics to the spool and pictures to the outbox, and the main process delivers both.
"""

from attnlab.tracking.environment import set_defaults

set_defaults()  # before anything here imports mlflow, which reads some of it at import
