"""Runs of the variants that need no services, one result file for each; those that are there are not run again.
`npm run study:tiny-grpo -- --simulated` calls it."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

from .run_state import load_weights, write_atomically
from .simulated_run import run_variant
from .study import FOLDER, START_STEPS, start_file
from .variants import MAIN, VARIANTS

#: New seeds: the plan of the study was made when the results of the seeds 0 to 4 were known.
SEEDS = tuple(range(5, 17))


def variant_file(folder: Path, name: str, seed: int) -> Path:
    return folder / "simulated" / f"{name}-seed-{seed}.json"


def sweep(options: argparse.Namespace) -> None:
    """Runs what is missing: all variants with the first seed, then with the next one."""
    (options.folder / "simulated").mkdir(parents=True, exist_ok=True)
    wanted = [(name, seed) for seed in options.seeds for name in options.variants]
    missing = [one for one in wanted if not variant_file(options.folder, *one).exists()]
    print(f"{len(wanted)} runs, {len(wanted) - len(missing)} are there", flush=True)
    sizes = {"steps": options.steps, "groups": options.groups, "samples": options.samples}
    for name, seed in missing:
        start = load_weights(start_file(options.folder, seed, options.start_steps))
        result: dict[str, Any] = run_variant(VARIANTS[name], seed, start, **sizes)
        result["options"] = {"variant": name, "seed": seed, "start_steps": options.start_steps, **sizes}
        write_atomically(variant_file(options.folder, name, seed), json.dumps(result).encode())
        reward = result["evaluations"][-1]["reward"]
        print(f"{name}, seed {seed}: reward {reward:.3f}, {result['seconds']:.0f} s", flush=True)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="for results; a later call continues there")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(MAIN))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--steps", type=int, default=24, help="training steps of a run")
    parser.add_argument("--groups", type=int, default=16, help="prompts of a step")
    parser.add_argument("--samples", type=int, default=8, help="samples of a prompt")
    parser.add_argument("--start-steps", type=int, default=START_STEPS, help="steps of the supervised start")
    return parser.parse_args(arguments)


def main() -> None:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sweep(parse())


if __name__ == "__main__":
    main()
