"""Description of the machine that a figure was measured on."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys

import psutil

from configuration import PEERS

# By the environments that they are installed in
PEER_LIBRARIES = {"joeynmt": "joeynmt", "opennmt": "OpenNMT-py"}
# Limit torch and oneDNN to older instructions
HELD_BACK = ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA")
LIBRARIES = (
    "torch",
    "pytorch-lightning",
    "numpy",
    "pyarrow",
    "datasets",
    "tokenizers",
    "mlflow",
    "hydra-core",
    "torchmetrics",
)


def describe_machine() -> dict[str, str]:
    """The properties of the machine and the versions that affect a measurement.

    These are processor, cores, memory, system, Python, the libraries that affect the time, the
    installed peers, and the threads in use. None of them changes between measurements, so there is
    no date.
    """
    usable = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else psutil.cpu_count()
    )
    return {
        "processor": _processor(),
        "processors": f"{usable}, as the system counts them",
        "memory": f"{psutil.virtual_memory().total / 2**30:.1f} GiB",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: _version(name) for name in LIBRARIES},
        **_peers(),
        **{name: os.environ[name] for name in HELD_BACK if name in os.environ},
        "threads": os.environ.get("OMP_NUM_THREADS", "not limited"),
    }


def _processor() -> str:
    """The processor's name; with the vector units that decide what bfloat16 gains."""
    name, units = platform.processor() or platform.machine(), ""
    if sys.platform == "linux":
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            facts = dict(line.split(":", 1) for line in lines if ":" in line)
        facts = {key.strip(): value.strip() for key, value in facts.items()}
        name = facts.get("model name", name)
        known = facts.get("flags", "").split()
        units = " ".join(
            unit for unit in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if unit in known
        )
    return f"{name} ({units})" if units else name


def _peers() -> dict[str, str]:
    versions = {}
    for environment, library in PEER_LIBRARIES.items():
        places = [str(place) for place in (PEERS / environment).glob("lib/python3*/site-packages")]
        for found in importlib.metadata.distributions(name=library, path=places):
            versions[library] = found.version
    return versions


def _version(library: str) -> str:
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
