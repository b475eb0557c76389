"""The array library of the model: numpy, or cupy on a GPU. cupy has numpy's names and takes numpy's functions for its
own arrays, so only code that makes arrays, or reads them, differs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Environment variable with the name of the library: `numpy` by default; `cupy` must be installed.
LIBRARY = "TINY_GRPO_ARRAYS"
xp: Any = import_module(os.environ.get(LIBRARY, "numpy"))


def to_host(array: Any) -> NDArray[Any]:
    """An array of numpy."""
    return np.asarray(array.get() if hasattr(array, "get") else array)


def to_device(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays of the library; its own arrays are not copied."""
    return {name: xp.asarray(array) for name, array in arrays.items()}
