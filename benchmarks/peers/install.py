"""Makes an environment for each peer under runs/peers, with pinned versions.

    python benchmarks/peers/install.py [--only joeynmt|opennmt|yoyodyne|entmax]

All take the torch that attnlab is measured with. The older versions that the peers themselves pin
are ignored (`--no-deps`), and their runners repair what that breaks. Where pip's default build of
torch is not wanted, set pip's own variables, such as PIP_FIND_LINKS or PIP_INDEX_URL.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent.parent / "runs" / "peers"
TORCH = "torch==2.13.0"
# setuptools: the last ones with pkg_resources, which older packages import.
BUILD = ("setuptools==80.10.2",)
PEERS = {
    "entmax": ("entmax==1.3", "entmax"),
    "joeynmt": ("joeynmt==2.3.0", "joeynmt.training"),
    "opennmt": ("OpenNMT-py==3.5.1", "pyonmttok"),
    "yoyodyne": ("yoyodyne==0.5.27", "yoyodyne.cli.main"),
}
NEEDS = {
    "entmax": ("numpy==2.4.6",),
    "joeynmt": (
        "datasets==5.2.0",
        "importlib_metadata==10.2.0",
        "matplotlib==3.11.2",
        "numpy==2.4.6",
        "packaging==26.3",
        "pandas==3.1.1",
        "pyyaml==6.0.3",
        "sacrebleu==2.6.0",
        "sacremoses==0.2.0",
        "sentencepiece==0.2.3",
        "subword-nmt==0.3.8",
        "tensorboard==2.21.0",
        "tqdm==4.70.1",
    ),
    "opennmt": (
        "configargparse==1.9.0",
        "numpy==2.4.6",
        "pyonmttok==1.38.1",
        "pyyaml==6.0.3",
        "rapidfuzz==3.14.6",
        "sacrebleu==2.6.0",
        "sentencepiece==0.2.3",
        "six==1.17.0",
        "tensorboard==2.21.0",
    ),
    "yoyodyne": (
        "jsonargparse[signatures]==4.53.0",
        "lightning==2.6.6",
        "maxwell==0.2.6",
        "numpy==2.4.6",
        "omegaconf==2.3.1",
        "pyyaml==6.0.3",
        "rich==15.0.0",
        "torchmetrics==1.9.0",
        "wandb==0.31.0",
    ),
}


def install(name: str) -> None:
    """Make the environment of a peer, and remove it if that fails.

    Raises CalledProcessError if pip fails.
    """
    package, module = PEERS[name]
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    try:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = folder / "bin" / "python"
        # torch first and alone: together with others, pip may choose another build of it. The peer
        # last: what it pins is not there, and pip would say so at every other package.
        for packages in ((TORCH, *BUILD), NEEDS[name], ("--no-deps", package)):
            subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
        subprocess.run([python, "-c", f"import {module}"], check=True)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    print(f"{package} is in {folder}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=sorted(PEERS), help="this peer alone")
    only = parser.parse_args().only
    for name in [only] if only else sorted(PEERS):
        try:
            install(name)
        except subprocess.CalledProcessError as error:
            sys.exit(f"{name} could not be installed: {error}")


if __name__ == "__main__":
    main()
