"""Checkpoints on disk: there whole or not at all, and known when they are damaged."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

import torch
from pytorch_lightning.plugins.io import TorchCheckpointIO

from attnlab.errors import ExperimentError
from attnlab.files import atomic_file, sync

LAST, BEFORE_LAST = "last.ckpt", "before_last.ckpt"


class CheckpointFiles(TorchCheckpointIO):
    """What Lightning writes checkpoints with. Beside the last one stays the one before it, should the last be damaged.

    Lightning's own way writes to the temporary folder and moves the file from there: between file systems that is a
    copy, which a process may die in.
    """

    def __init__(self) -> None:
        self._last_is_damaged = False

    def load_checkpoint(self, path: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        # Whoever goes on from the one before finds the last one damaged, or none.
        self._last_is_damaged = Path(path).name == BEFORE_LAST
        return super().load_checkpoint(path, *args, **kwargs)

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        """Raises ExperimentError where there is no room, or nothing may be written; older checkpoints stay."""
        path = Path(path)
        try:
            with atomic_file(path) as temporary:
                torch.save(checkpoint, temporary)
                if path.name == LAST and path.exists() and not self._last_is_damaged:
                    sync(temporary)  # a disk may be full only now, and the last one must not have been moved by then
                    os.replace(path, path.with_name(BEFORE_LAST))
            self._last_is_damaged &= path.name != LAST
        except (OSError, RuntimeError) as error:
            # torch reports a full disk in an error of its own, in words for its authors.
            reason = error.strerror if isinstance(error, OSError) else _reason(path.parent)
            raise ExperimentError(
                f"the checkpoint {path} could not be written: {reason}; the checkpoints before it are kept: make room "
                f"or give paths.runs another place, and the same command goes on from the last of them"
            ) from error


def checkpoint_step(path: Path) -> int:
    """The optimiser steps that a checkpoint's training had made.

    Raises ValueError, with the reason, where the file is not what was written: every part of it carries a checksum
    (CRC-32), and what is no plain data is refused.
    """
    try:
        with zipfile.ZipFile(path) as parts:
            damaged = parts.testzip()
        if damaged is not None:
            raise ValueError(f"its part {damaged} does not have its checksum")
        return int(torch.load(path, map_location="cpu", weights_only=True, mmap=True)["global_step"])
    except ValueError:
        raise
    except OSError as error:
        raise ValueError(error.strerror or str(error)) from error
    except Exception as error:  # whatever zipfile, torch or pickle raise for an invalid file
        raise ValueError(str(error).strip().split("\n")[0] or type(error).__name__) from error


def _reason(folder: Path) -> str:
    """Why torch could not write, found out by trying."""
    probe = folder / f".probe.{os.getpid()}"
    try:
        probe.write_bytes(bytes(1 << 20))
    except OSError as error:
        return str(error.strerror)
    finally:
        probe.unlink(missing_ok=True)
    return "no space left while it was written"
