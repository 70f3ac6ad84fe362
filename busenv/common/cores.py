"""The number of cores that this process may use."""

from __future__ import annotations

import math
import os
from pathlib import Path

CPU_MAX = Path("/sys/fs/cgroup/cpu.max")  # quota of a container (Linux control groups, version 2)


def available_cores() -> int:
    """Return the number of cores, at most those of the affinity and of a container's quota."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on Windows and macOS
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    try:
        quota, period = map(int, CPU_MAX.read_text().split())
    except (OSError, ValueError):  # "max": no quota
        return cores
    return max(min(cores, math.ceil(quota / period)), 1)
