"""Numbers of a step with the names that trainers plot."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any

from ._step import YieldedGroup

#: Names of metrics, and where a `LedgerSummary` has them.
_LEDGER: dict[str, tuple[str, ...]] = {
    "response_length/mean": ("trained", "meanTokens"),
    "response_length/p50": ("trained", "p50Tokens"),
    "response_length/p99": ("trained", "p99Tokens"),
    "response_length/clip_ratio": ("trained", "capShare"),
    "rollout/samples": ("trained", "samples"),
    **{
        f"rollout/{kind}_rounds/{name}": ("trainedByKind", kind, field)
        for kind in ("short", "long")
        for name, field in (("samples", "samples"), ("response_length", "meanTokens"), ("clip_ratio", "capShare"))
    },
    "rollout/length_bias": ("lengthBias",),
    "rollout/off_policy_share": ("offPolicyShare",),
    "rollout/version_span/mean": ("versionSpan", "mean"),
    "rollout/version_span/max": ("versionSpan", "max"),
    "rollout/cuts_per_group/mean": ("cutsPerGroup", "mean"),
    "rollout/cuts_per_group/max": ("cutsPerGroup", "max"),
    "rollout/excluded_groups": ("excluded", "groups"),
    "rollout/wasted_tokens": ("waste", "tokens"),
}


def ledger_metrics(summary: dict[str, Any]) -> dict[str, float]:
    """Metrics from a `LedgerSummary`: lengths with the names of verl, and costs of the tail policy below `rollout/`.
    Fields that a service of an earlier version does not send are left out."""
    metrics: dict[str, float] = {}
    for name, path in _LEDGER.items():
        value: Any = summary
        for field in path:
            value = value.get(field) if value is not None else None
        if value is not None:
            metrics[name] = float(value)
    for reason, tokens in summary.get("waste", {}).get("byReason", {}).items():
        metrics[f"rollout/wasted_tokens/{reason}"] = float(tokens)
    return metrics


def round_metrics(step: int, groups: Iterable[YieldedGroup], seconds: float) -> dict[str, float]:
    """Metrics from the results of one round, with the names of verl."""
    lengths, cut_off = array("q"), 0
    for group in groups:
        lengths.extend(group.lengths)
        cut_off += group.cut_off
    tokens = sum(lengths)
    most = max(1, len(lengths))
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
