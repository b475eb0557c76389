"""Runs without services, and their tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tiny_grpo import evaluation
from tiny_grpo.sweep import parse, report, sweep
from tiny_grpo.sweep_report import BySeed, area, at_equal_time, equivalence_table, reward_at, sweep_table, variant_file


def result(seed: int, rewards: list[float], seconds: float, **more: Any) -> dict[str, Any]:
    """A result with an evaluation before the first step and after each step of so many simulated seconds."""
    step = {"simulated_seconds": seconds, "kl": 0.0, "sample_ess": 1.0}
    return {
        "options": {"seed": seed},
        "steps": [step for _ in rewards[1:]],
        "evaluations": [
            {"step": index, "reward": reward, "length": 20.0, "truncated": 0.0} for index, reward in enumerate(rewards)
        ],
        **more,
    }


def runs(rewards: list[float], seconds: float) -> BySeed:
    """Results by seed, each of two steps that end with the reward of the seed."""
    return {seed: result(seed, [0.4, 0.5, reward], seconds) for seed, reward in enumerate(rewards)}


def test_the_reward_between_two_evaluations_is_on_the_line_through_them() -> None:
    one = result(0, [0.4, 0.6, 0.7], 2.0)
    assert [reward_at(one, at) for at in (0, 1, 2, 3, 4, 9)] == pytest.approx([0.4, 0.5, 0.6, 0.65, 0.7, 0.7])
    assert area(one) == pytest.approx((0.5 + 0.65) / 2)


def test_runs_are_compared_when_the_faster_one_ends() -> None:
    fast, slow = {0: result(0, [0.4, 0.6], 1.0)}, {0: result(0, [0.4, 0.6], 2.0)}
    assert at_equal_time(fast, slow) == pytest.approx([0.1])
    assert at_equal_time(slow, fast) == pytest.approx([-0.1])


def test_the_table_says_what_is_equivalent_and_what_is_worse() -> None:
    waiting = [0.70, 0.71, 0.72, 0.73]
    studied = {
        "wait": runs(waiting, 2),
        # The mean difference is 0.001, with a standard error of 0.0013.
        "resume": runs([0.702, 0.709, 0.724, 0.729], 1),
        "regenerate": runs([0.64, 0.67, 0.66, 0.69], 1),
        "control": runs([0.3, 0.35, 0.32, 0.34], 1),
    }
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in equivalence_table(studied).splitlines()[2:]]
    by_name = {row[0]: row for row in rows}
    assert by_name["`wait`"][3:] == ["-"] * 8
    assert by_name["`regenerate`"][3:5] == ["-0.050 ± 0.014", "4 of 4"]
    # Holm: times two of the two policies that are tested; the control is not.
    assert float(by_name["`regenerate`"][6]) == pytest.approx(2 * 0.0033, abs=0.001)
    assert float(by_name["`regenerate`"][7]) > 0.9
    assert float(by_name["`resume`"][7]) < 0.001 < float(by_name["`resume`"][6])
    assert by_name["`control`"][6] == "-"


def test_a_variant_stands_beside_the_one_from_which_it_differs() -> None:
    studied = {"wait": runs([0.7], 2), "late": runs([0.6], 2), "late-no-ratios": runs([0.5], 2)}
    rows = sweep_table(studied).splitlines()[2:]
    assert ["`wait` | -0.100" in rows[0], "`late` | -0.100" in rows[1]] == [True, True]
    assert len(rows) == 2


def test_a_sweep_runs_what_is_missing_and_reports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("EVALUATED_PROBLEMS", "FINAL_PROBLEMS"):
        monkeypatch.setattr(evaluation, name, 4)
    arguments = "--variants wait resume wait-truncated --seeds 5 6 --start-steps 2 --steps 2 --groups 2 --samples 2"
    options = parse(["--folder", str(tmp_path), *arguments.split()])
    sweep(options)
    assert "6 runs, 0 are there" in capsys.readouterr().out
    kept = variant_file(tmp_path, "wait", 6).read_bytes()
    variant_file(tmp_path, "wait", 5).unlink()
    sweep(options)
    output = capsys.readouterr().out
    assert "6 runs, 5 are there" in output
    assert variant_file(tmp_path, "wait", 6).read_bytes() == kept
    tables = report(tmp_path, tmp_path / "images")
    assert "| `resume` | 2 |" in tables
    assert "| `wait-truncated` | 2 |" in tables
    pytest.importorskip("matplotlib")
    assert len((tmp_path / "images" / "tiny-grpo-simulated-runs.csv").read_text().splitlines()) == 7
    assert (tmp_path / "images" / "tiny-grpo-equivalence.svg").exists()
