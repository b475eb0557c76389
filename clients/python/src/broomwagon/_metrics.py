"""Numbers of a step with the names that trainers plot."""

from __future__ import annotations

from typing import Any

from .results import Group


def ledger_metrics(summary: dict[str, Any]) -> dict[str, float]:
    """A `LedgerSummary`: lengths with the names of verl, and what the tail policy cost below `rollout/`."""
    trained = summary["trained"]
    metrics = {
        "response_length/mean": trained["meanTokens"],
        "response_length/p50": trained["p50Tokens"],
        "response_length/p99": trained["p99Tokens"],
        "response_length/clip_ratio": trained["capShare"],
        "rollout/samples": trained["samples"],
        "rollout/length_bias": summary["lengthBias"],
        "rollout/off_policy_share": summary["offPolicyShare"],
        "rollout/version_span/mean": summary["versionSpan"]["mean"],
        "rollout/version_span/max": summary["versionSpan"]["max"],
        "rollout/cuts_per_group/mean": summary["cutsPerGroup"]["mean"],
        "rollout/cuts_per_group/max": summary["cutsPerGroup"]["max"],
        "rollout/excluded_groups": summary["excluded"]["groups"],
        "rollout/wasted_tokens": summary["waste"]["tokens"],
    }
    for reason, tokens in summary["waste"]["byReason"].items():
        metrics[f"rollout/wasted_tokens/{reason}"] = tokens
    return {name: float(value) for name, value in metrics.items()}


def round_metrics(step: int, groups: list[Group], seconds: float) -> dict[str, float]:
    """What the results of one round show, with the names of verl."""
    samples = [sample for group in groups for sample in group.samples]
    lengths = [sample.token_count for sample in samples]
    tokens = sum(lengths)
    cut_off = sum(sample.finish_reason == "length" for sample in samples)
    most = max(1, len(samples))
    return {
        "training/global_step": float(step),
        "timing_s/gen": seconds,
        "perf/total_num_tokens": float(tokens),
        "perf/throughput": tokens / seconds if seconds > 0 else 0.0,
        "response_length/mean": tokens / most,
        "response_length/clip_ratio": cut_off / most,
        "response_length/max": float(max(lengths, default=0)),
        "response_length/min": float(min(lengths, default=0)),
    }
