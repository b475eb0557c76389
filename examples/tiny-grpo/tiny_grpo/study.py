"""Runs each policy with each seed, with one result file per run; finished runs are not repeated. Prints a table, and
draws plots if matplotlib is installed. `npm run study:tiny-grpo` calls it."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .details import details
from .learning import supervised_start
from .model import SIZES
from .policies import POLICIES
from .report import draw, read_study, table
from .run_state import load_weights, save_arrays, write_atomically
from .system import System

FOLDER = Path("tiny-grpo-study")
#: Steps of the supervised start: enough to add with errors, and to use both styles about equally often.
START_STEPS = 750
#: Last steps of the start, which each seed has of its own, and the seed of the steps before them.
OWN_START_STEPS, TRUNK_SEED = 50, 2_000_003
#: Options in which compared runs must agree, with the values of results that lack them.
COMPARED_OPTIONS = {"steps": None, "groups": None, "samples": None, "start_steps": None, "size": "small"}
#: Seconds after which a run has failed.
RUN_DEADLINE = 1_800.0


def start_file(folder: Path, seed: int, steps: int = START_STEPS, size: str = "small") -> Path:
    """Weights of the supervised start of a seed; created once. Only the last steps have the problems of the seed: the
    steps before them, which are most of the cost, are the same for all seeds."""
    kind = "" if size == "small" else f"{size}-"
    file = folder / f"start-{kind}{seed}-{steps}.npz"
    if not file.exists():
        own = min(OWN_START_STEPS, steps)
        trunk = folder / f"trunk-{kind}{steps - own}.npz"
        if not trunk.exists():
            print(f"Supervised start of all seeds: {steps - own} steps", flush=True)
            save_arrays(trunk, supervised_start(TRUNK_SEED, steps - own, size=SIZES[size]))
        print(f"Supervised start of seed {seed}: {own} steps", flush=True)
        save_arrays(file, supervised_start(seed, own, trunk=load_weights(trunk)))
    return file


def result_file(folder: Path, policy: str, seed: int) -> Path:
    return folder / f"{policy}-{seed}.json"


def run(system: System, options: argparse.Namespace, policy: str, seed: int) -> None:
    """One run, and its result.

    :raises RuntimeError: the trainer has failed
    """
    work = options.folder / f"{policy}-{seed}"
    # A pool of another study does not know the job, so an unfinished run starts again.
    for left in work.glob("*.npz"):
        left.unlink()
    began = time.monotonic()
    trainer = system.trainer(
        {
            "policy": policy,
            "seed": seed,
            "job": f"{policy}-{seed}",
            "start": start_file(options.folder, seed, options.start_steps, options.size),
            "folder": work,
            "steps": options.steps,
            "groups": options.groups,
            "samples": options.samples,
        }
    )
    try:
        code = trainer.wait(RUN_DEADLINE)
    finally:
        trainer.kill()
    if code != 0:
        raise RuntimeError(f"The trainer of {policy} with seed {seed} has ended with {code}")
    result: dict[str, Any] = json.loads((work / "result.json").read_text())
    for step in result["steps"]:
        # The ids are for tests.
        del step["samples"]
    result["options"] |= {"start_steps": options.start_steps, "size": options.size}
    result["seconds"] = time.monotonic() - began
    write_atomically(result_file(options.folder, policy, seed), json.dumps(result).encode())
    for left in [*work.iterdir(), work]:
        left.rmdir() if left.is_dir() else left.unlink()


def check_folder(options: argparse.Namespace) -> None:
    """:raises SystemExit: the folder has results of runs with other options, which cannot be compared"""
    for file in sorted(options.folder.glob("**/*-[0-9]*.json")):
        done = json.loads(file.read_text())["options"]
        for name, absent in COMPARED_OPTIONS.items():
            if (found := done.get(name, absent)) != getattr(options, name):
                raise SystemExit(f"{file} has {name} {found}, not {getattr(options, name)}: use another --folder")


def study(options: argparse.Namespace) -> bool:
    """Runs the missing runs. Returns whether all have succeeded.

    :raises SystemExit: as `check_folder`
    """
    options.folder.mkdir(parents=True, exist_ok=True)
    check_folder(options)
    wanted = [(policy, seed) for seed in options.seeds for policy in options.policies]
    missing = [one for one in wanted if not result_file(options.folder, *one).exists()]
    print(f"{len(wanted)} runs, {len(wanted) - len(missing)} are there", flush=True)
    if not missing:
        return True
    failed = 0
    with System(start_file(options.folder, missing[0][1], options.start_steps, options.size), options.pace) as system:
        for number, (policy, seed) in enumerate(missing, 1):
            print(f"Run {number} of {len(missing)}: {policy}, seed {seed}", flush=True)
            try:
                run(system, options, policy, seed)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                failed += 1
                print(error, flush=True)
    return failed == 0


def add_common_options(parser: argparse.ArgumentParser) -> None:
    """Options of every study, which its runs must have in common, and where they are."""
    parser.add_argument("--folder", type=Path, default=FOLDER, help="for results; a later call continues there")
    parser.add_argument("--images", type=Path, help="for plots; default: beside the results")
    parser.add_argument("--size", choices=SIZES, default="small", help="of the model")
    parser.add_argument("--steps", type=int, default=24, help="training steps of a run")
    parser.add_argument("--groups", type=int, default=16, help="prompts of a step")
    parser.add_argument("--samples", type=int, default=8, help="samples of a prompt")
    parser.add_argument("--start-steps", type=int, default=START_STEPS, help="steps of the supervised start")


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policies", nargs="+", choices=POLICIES, default=list(POLICIES))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    add_common_options(parser)
    parser.add_argument("--pace", type=float, default=1.0, help="real seconds of one simulated second of the engines")
    options = parser.parse_args(arguments)
    options.folder = options.folder.absolute()
    options.images = options.images or options.folder / "images"
    return options


def main() -> None:
    # SIGTERM ends the processes of the system, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # For the supervised start; the processes of a system set the variable themselves.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    options = parse()
    is_complete = study(options)
    if studied := read_study(options.folder):
        if find_spec("matplotlib"):
            draw(studied, options.images)
        print(table(studied), details(studied), sep="\n\n")
    sys.exit(0 if is_complete else 1)


if __name__ == "__main__":
    main()
