"""The state of a run in one file, which is replaced as a whole: a trainer that is killed continues from it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import to_device, to_host, xp
from .learning import Adam
from .model import Weights


def write_atomically(path: Path, data: bytes) -> None:
    """Replaces a file: a reader finds the old or the new contents, also after a crash of the machine."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def save_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    with part.open("wb") as file:
        np.savez(file, **{name: to_host(array) for name, array in arrays.items()})  # type: ignore[arg-type]
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def load_weights(path: Path) -> Weights:
    with np.load(path) as file:
        return to_device(file)


@dataclass
class Run:
    """A run after some steps.

    :param first_version: weight version of the pool that the weights of step 0 have
    """

    weights: Weights
    adam: Adam
    first_version: int = 0
    step: int = 0
    #: One record for each step.
    records: list[dict[str, Any]] = field(default_factory=list)
    #: Numbers of the model on problems that are not trained, by step.
    evaluations: list[dict[str, Any]] = field(default_factory=list)

    def save(self, path: Path) -> None:
        notes = {
            "first_version": self.first_version,
            "step": self.step,
            "adam_steps": self.adam.steps,
            "records": self.records,
            "evaluations": self.evaluations,
        }
        parts = {"weights": self.weights, "first": self.adam.first, "second": self.adam.second}
        arrays = {f"{part}/{name}": value for part, values in parts.items() for name, value in values.items()}
        save_arrays(path, {**arrays, "notes": np.frombuffer(json.dumps(notes).encode(), np.uint8)})

    @staticmethod
    def load(path: Path, rate: float) -> Run:
        with np.load(path) as file:
            notes = json.loads(file["notes"].tobytes())
            parts: dict[str, Weights] = {"weights": {}, "first": {}, "second": {}}
            for key in file.files:
                part, _, name = key.partition("/")
                if name:
                    parts[part][name] = xp.asarray(file[key])
        adam = Adam(parts["weights"], rate)
        adam.first, adam.second, adam.steps = parts["first"], parts["second"], notes.pop("adam_steps")
        return Run(parts["weights"], adam, **notes)
