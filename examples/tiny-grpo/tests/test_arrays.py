"""The model with another array library, and in its other size."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tiny_grpo import evaluation
from tiny_grpo.arrays import LIBRARY, to_host
from tiny_grpo.model import SIZES, initial_weights, layers_of, width_of
from tiny_grpo.run_state import load_weights
from tiny_grpo.sweep import parse, sweep

COMMAND = "--seeds 0 --variants resume --start-steps 2 --steps 2 --groups 2 --samples 2".split()
TESTS = Path(__file__).parent


def run(folder: Path, library: str, *options: str) -> dict[str, bytes]:
    """Files of weights after a short run with the arrays of a library."""
    paths = os.pathsep.join([str(TESTS), str(TESTS.parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, LIBRARY: library, "PYTHONPATH": paths}
    command = [sys.executable, "-m", "tiny_grpo.sweep", "--folder", str(folder), *COMMAND, *options]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return {file.name: file.read_bytes() for file in folder.glob("*.npz")}


def test_no_array_of_the_host_meets_one_of_the_device(tmp_path: Path) -> None:
    # Only the places of arrays differ, not their numbers.
    assert run(tmp_path / "strict", "strict_arrays") == run(tmp_path / "numpy", "numpy")


def test_the_strict_arrays_find_what_cupy_refuses() -> None:
    from strict_arrays import asarray

    with pytest.raises(TypeError, match="has an array of numpy"):
        asarray([1.0, 2.0]) + np.ones(2)
    with pytest.raises(TypeError, match="has an array of numpy"):
        asarray([1.0, 2.0])[np.array([0])]
    assert to_host(asarray([1.0, 2.0]) * np.float32(2)).tolist() == [2, 4]


def test_the_large_model_has_some_ten_million_parameters() -> None:
    weights = initial_weights(np.random.default_rng(0), SIZES["large"])
    assert 9_000_000 <= sum(value.size for value in weights.values()) <= 11_000_000
    assert (layers_of(weights), width_of(weights)) == (8, 320)


def test_a_study_of_the_large_model_runs_and_is_not_mixed_with_one_of_the_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("EVALUATED_PROBLEMS", "FINAL_PROBLEMS"):
        monkeypatch.setattr(evaluation, name, 2)
    sweep(parse(["--folder", str(tmp_path), "--size", "large", *COMMAND]))
    assert width_of(load_weights(tmp_path / "start-large-0-2.npz")) == 320
    with pytest.raises(SystemExit, match="has size large, not small"):
        sweep(parse(["--folder", str(tmp_path), *COMMAND]))
