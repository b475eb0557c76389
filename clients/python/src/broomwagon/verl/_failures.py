"""Samples whose agent loop has failed, and groups that were dropped: verl trains a step without them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

#: Maximum failed samples that a message names.
MAX_NAMED = 3


@dataclass(frozen=True)
class FailedSample:
    """A sample that ended with an exception, or a group that verl's sampler has dropped."""

    #: verl's `uid` of the prompt; None if the trainer gives no `uid`.
    group: str | None
    #: Index of the sample in its group; None for a group that was dropped.
    sample: int | None
    #: `raw_prompt` of the row of the data set.
    prompt: Any
    #: `index` of the row.
    index: Any
    #: Step in which the prompt was taken from the data set.
    step: int | None
    #: Whether the sample belongs to a validation.
    validate: bool
    #: The exception, or the reason why the group was dropped.
    reason: str
    outcome: Literal["failed", "dropped"] = "failed"

    def __str__(self) -> str:
        sample = f"sample {self.sample} of " if self.outcome == "failed" else ""
        return f"{sample}group {self.group} (row {self.index}): {self.reason}"


class SamplesFailed(Exception):
    """Samples have failed, or groups were dropped, and `trainer.v1.broomwagon.on_failed` is `raise`."""

    def __init__(self, samples: Sequence[FailedSample]) -> None:
        super().__init__(samples)
        self.samples = samples

    def __str__(self) -> str:
        return describe(self.samples)


def failed_sample(error: Exception, trajectory: Mapping[str, Any], row: Mapping[str, Any]) -> FailedSample:
    """
    :param trajectory: the description of the sample that verl's agent loops get
    :param row: the row of the data set, with verl's fields
    """
    return FailedSample(
        group=row.get("uid"),
        sample=row.get("session_id"),
        prompt=row.get("raw_prompt"),
        index=row.get("index"),
        step=trajectory.get("step"),
        validate=bool(trajectory.get("validate")),
        reason=repr(error),
    )


def describe(samples: Sequence[FailedSample]) -> str:
    """One sentence that counts all samples and groups, and names the first."""
    named = "; ".join(map(str, samples[:MAX_NAMED]))
    more = f"; and {len(samples) - MAX_NAMED} more" if len(samples) > MAX_NAMED else ""
    dropped = sum(sample.outcome == "dropped" for sample in samples)
    return f"{len(samples) - dropped} samples have failed, and {dropped} groups were dropped: {named}{more}"


def failure_metrics(samples: Sequence[FailedSample]) -> dict[str, float]:
    """Counts for the metrics of a step."""
    failed = [sample.group for sample in samples if sample.outcome == "failed"]
    return {
        "training/failed_samples": float(len(failed)),
        "training/failed_groups": float(len({*failed})),
        "training/dropped_groups": float(len(samples) - len(failed)),
    }
