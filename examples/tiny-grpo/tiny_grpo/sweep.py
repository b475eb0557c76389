"""Runs the variants that need no services, with one result file per run; finished runs are not repeated.
`npm run study:tiny-grpo -- --simulated` calls it."""

from __future__ import annotations

import argparse
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .report import read_study
from .run_state import load_weights, write_atomically
from .simulated_run import run_variant
from .study import add_common_options, check_folder, start_file
from .sweep_report import (
    by_seed,
    distance_table,
    draw_sweep,
    driver_table,
    equivalence_table,
    read_sweep,
    runs_csv,
    sweep_table,
    variant_file,
)
from .variants import MAIN, VARIANTS

#: New seeds: the plan of the study was made when the results of the seeds 0 to 4 were known.
SEEDS = tuple(range(5, 17))


def sweep(options: argparse.Namespace) -> None:
    """Runs the missing runs: all variants with the first seed, then with the next one.

    :raises SystemExit: as `check_folder`
    """
    (options.folder / "simulated").mkdir(parents=True, exist_ok=True)
    check_folder(options)
    wanted = [(name, seed) for seed in options.seeds for name in options.variants]
    missing = [one for one in wanted if not variant_file(options.folder, *one).exists()]
    print(f"{len(wanted)} runs, {len(wanted) - len(missing)} are there", flush=True)
    sizes = {"steps": options.steps, "groups": options.groups, "samples": options.samples}
    for name, seed in missing:
        start = load_weights(start_file(options.folder, seed, options.start_steps, options.size))
        result: dict[str, Any] = run_variant(VARIANTS[name], seed, start, **sizes)
        own = {"variant": name, "seed": seed, "start_steps": options.start_steps, "size": options.size}
        result["options"] = own | sizes
        write_atomically(variant_file(options.folder, name, seed), json.dumps(result).encode())
        reward = result["evaluations"][-1]["reward"]
        print(f"{name}, seed {seed}: reward {reward:.3f}, {result['seconds']:.0f} s", flush=True)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(MAIN))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    add_common_options(parser)
    return parser.parse_args(arguments)


def report(folder: Path, images: Path) -> str:
    """All tables, as Markdown; plots too, if matplotlib is installed."""
    studied = read_sweep(folder)
    served = {name: by_seed(results) for name, results in read_study(folder).items()}
    main = {name: studied[name] for name in MAIN if name in studied}
    tables = [equivalence_table(main), distance_table(main)]
    if "wait" in served:
        tables += ["With services:", equivalence_table(served), distance_table(served)]
        tables += ["With services beside without:", driver_table(served, main)]
    tables.append(sweep_table(studied))
    if find_spec("matplotlib"):
        draw_sweep(main, images)
        (images / "tiny-grpo-simulated-runs.csv").write_text(runs_csv(studied))
        if served:
            (images / "tiny-grpo-served-runs.csv").write_text(runs_csv(served))
    return "\n\n".join(tables)


def main() -> None:
    options = parse()
    sweep(options)
    print(report(options.folder, options.images or options.folder / "images"))


if __name__ == "__main__":
    main()
