"""The launcher of launcher=slurm whose jobs are processes of this machine, without a cluster."""

from __future__ import annotations

from typing import Any

from hydra_plugins.attnlab_slurm_launcher import SlurmArrayLauncher as OnSlurm


class SlurmArrayLauncher(OnSlurm):
    """The jobs are submitit's own processes, which outlive the command as those of Slurm do."""

    def _executor(self) -> Any:
        import submitit

        executor = submitit.AutoExecutor(folder=self.params["submitit_folder"], cluster="local")
        executor.update_parameters(timeout_min=20)
        return executor
