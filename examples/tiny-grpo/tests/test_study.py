"""The short form of the study: two policies, one seed, few steps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tiny_grpo.details import details
from tiny_grpo.plots import deviation
from tiny_grpo.report import beside_wait, draw, interval_or_mean, read_study, runs, table
from tiny_grpo.study import parse, result_file, start_file, study

ARGUMENTS = ["--policies", "wait", "regenerate", "--seeds", "0", "--steps", "5", "--groups", "4", "--samples", "4"]


def test_runs_are_compared_with_those_of_the_same_seed() -> None:
    def results(**rewards: float) -> list[dict[str, Any]]:
        return [{"options": {"seed": int(seed[1:])}, "reward": reward} for seed, reward in rewards.items()]

    found = beside_wait(results(s1=0.75, s0=0.5, s2=1), results(s0=0.25, s1=0.5), lambda result: result["reward"])
    assert found == [(0.75, 0.5), (0.5, 0.25)]
    assert deviation([1, 2, 3]) == 1
    assert deviation([5]) == 0


def test_intervals_are_those_of_student() -> None:
    # 2.776 x sqrt(2.5 / 5)
    assert interval_or_mean([1, 2, 3, 4, 5], 2) == "3.00 ± 1.96"
    assert interval_or_mean([1, 2], 2) == "1.50"


def test_the_numbers_of_the_text_are_printed() -> None:
    def result(seed: int, policy: str, length: float, acceptance: float) -> dict[str, Any]:
        chosen = [{"policy": name, "over_provision": 1.125} for name in ("wait", "drip", "drip")]
        return {
            "options": {"seed": seed},
            "steps": [
                {"mean_ratio": 1 + index / 1000, "clipped_share": 0, "length": 10 + index, "simulated_seconds": 2}
                | ({"choice": choice} if policy == "auto" else {})
                for index, choice in enumerate(chosen)
            ],
            "evaluations": [{"length": 13.5, "reward": 0.5}, {"length": length, "reward": 0.75}],
            "ledger": {
                "acceptance": [{"fromTokens": 28, "ratio": 2}, {"fromTokens": 32, "ratio": acceptance}],
                "offPolicyShare": 0.25,
                "lengthBias": 1,
                "waste": {"share": 0},
                "versionSpan": {"max": 2},
            },
            "seconds": 60,
        }

    studied = {
        policy: [result(seed, policy, 20 + seed + more, 0.5 + seed / 10) for seed in range(3)]
        for policy, more in (("wait", 0.0), ("auto", 0.5))
    }
    lines = details(studied).splitlines()
    assert lines[3] == "| `auto` | 13.5 ± 0.0 | 0.50 ± 0.00 | 1.000 to 1.002 | 0.50 to 0.70 |"
    assert lines[5] == "Responses to the evaluated problems that show all work have 21.6 tokens."
    assert lines[7] == "`auto`, seed 0: rounds: wait 1, drip 2; over-provision 1.125 at the end"
    assert len(lines) == 12
    assert runs(studied).splitlines()[4] == "auto,0,0.5,0.75,20.5,6,0.25,1,0,2,0,11,10,60"


def test_results_of_other_options_are_refused(tmp_path: Path) -> None:
    options = {"steps": 5, "groups": 4, "samples": 4, "start_steps": 60}
    result_file(tmp_path, "drip", 3).write_text(json.dumps({"options": options}))
    with pytest.raises(SystemExit, match="has steps 5, not 24"):
        study(parse(["--folder", str(tmp_path)]))


def test_a_study_runs_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = parse(["--folder", str(tmp_path), "--start-steps", "60", *ARGUMENTS])
    assert study(options)
    for policy in options.policies:
        result = json.loads(result_file(tmp_path, policy, 0).read_text())
        assert [step["step"] for step in result["steps"]] == [1, 2, 3, 4, 5]
        assert all(0 <= step["reward"] <= 1 < step["length"] for step in result["steps"])
        assert all(step["simulated_seconds"] > 0 for step in result["steps"])
        assert result["ledger"]["trained"]["samples"] == 5 * 4 * 4
        # Neither policy keeps old tokens: all tokens are from the weights that are trained.
        assert all(step["off_policy_share"] == 0 for step in result["steps"])
        assert all(step["mean_ratio"] == pytest.approx(1, abs=1e-3) for step in result["steps"])
        assert (result["ledger"]["waste"]["tokens"] > 0) == (policy == "regenerate")
    assert "Run 2 of 2" in capsys.readouterr().out
    result_file(tmp_path, "wait", 0).unlink()
    assert start_file(tmp_path, 0, 60).exists()
    assert study(options)
    assert "2 runs, 1 are there" in (output := capsys.readouterr().out)
    assert "Run 1 of 1: wait, seed 0" in output
    studied = read_study(tmp_path)
    assert list(studied) == ["wait", "regenerate"]
    assert [row.split(" | ")[:2] for row in table(studied).splitlines()[2:4]] == [
        ["| `wait`", "1"],
        ["| `regenerate`", "1"],
    ]
    assert details(studied).splitlines()[3].startswith("| `regenerate` | ")
    pytest.importorskip("matplotlib")
    draw(studied, tmp_path / "images")
    assert len(list((tmp_path / "images").glob("*.svg"))) == 5
    assert len((tmp_path / "images" / "tiny-grpo-runs.csv").read_text().splitlines()) == 3


def test_training_raises_the_reward_with_wait_and_with_auto(tmp_path: Path) -> None:
    options = parse(["--folder", str(tmp_path), "--policies", "wait", "auto", "--seeds", "0", "--steps", "9"])
    assert study(options)
    for policy, [result] in read_study(tmp_path).items():
        first, *_, last = result["evaluations"]
        # The runs of docs/does-cutting-hurt-learning.md gain 0.17 to 0.34 in nine steps.
        assert last["reward"] > first["reward"] + 0.1, policy
        assert result["ledger"]["lengthBias"] == pytest.approx(1, abs=1e-6)
        chosen = [step["choice"] for step in result["steps"] if "choice" in step]
        if policy == "auto":
            assert [choice["policy"] for choice in chosen[:2]] == ["wait", "wait"]
            assert chosen[0]["reason"] == "unknown"
            assert len(chosen) == 9
            # With its default bounds `auto` is unbiased, and tokens are at most two versions old.
            assert {choice["policy"] for choice in chosen} <= {"wait", "resume", "drip"}
            assert result["ledger"]["versionSpan"]["max"] <= 2
        else:
            assert chosen == []
