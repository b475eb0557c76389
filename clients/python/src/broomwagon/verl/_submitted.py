"""Groups that verl's sampler drops, for example because they are too old. verl counts them without their names."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import transfer_queue as tq

from ._failures import FailedSample

PARTITION = "train"
#: Fields of the row of a prompt.
PROMPT, INDEX = "raw_prompt", "index"


@dataclass(frozen=True)
class _Row:
    """The row of the data set of a group, and the step that has taken it."""

    prompt: Any
    index: Any
    step: int


def list_groups() -> dict[str, dict[str, Any]]:
    """The prompts that are generated, or wait for their training, with their tags for verl's sampler."""
    partition = (tq.kv_list(PARTITION) or {}).get(PARTITION, {})
    return {key: tag for key, tag in partition.items() if tag.get("is_prompt")}


class SubmittedGroups:
    """Groups from their submission to their training. After any sampler has chosen a batch, a group that is neither in
    the batch nor in verl's TransferQueue was dropped."""

    def __init__(self, sampler: Any, max_age: int | None) -> None:
        """
        :param sampler: verl's replay buffer; its `sample` is replaced
        :param max_age: `max_off_policy_threshold`, steps; None if the sampler drops no group for its age
        """
        self._sampler = sampler
        self._max_age = max_age
        self._choose = sampler.sample
        self._rows: dict[str | None, _Row] = {}
        self._dropped: list[FailedSample] = []
        sampler.sample = self.sample

    def add(self, batch: Any, step: int) -> None:
        """:param batch: rows of the data set, with verl's `uid`"""
        self._add(batch["uid"], batch, [step] * len(batch))

    def add_restored(self) -> None:
        """Adds groups of an earlier process, which verl has restored from a checkpoint."""
        groups = {group: tag for group, tag in list_groups().items() if group not in self._rows}
        if groups:
            batch = tq.kv_batch_get(keys=[*groups], partition_id=PARTITION, select_fields=[PROMPT, INDEX])
            self._add(groups, batch, [tag["global_steps"] for tag in groups.values()])

    def sample(self, global_steps: int, partition_id: str, batch_size: int) -> Any:
        """Replaces `sample` of verl's sampler, with its arguments and result."""
        chosen = self._choose(global_steps=global_steps, partition_id=partition_id, batch_size=batch_size)
        if partition_id == PARTITION:
            self._compare(global_steps, {key.split("_")[0] for key in chosen[0].keys})
        return chosen

    def take_dropped(self, failed: Collection[str | None]) -> list[FailedSample]:
        """The groups that were dropped since the last call.

        :param failed: groups whose samples have failed, which are reported by sample
        """
        for group in failed:
            # The group is reported now. The sampler may drop it in a later step, when its other samples have ended.
            self._rows.pop(group, None)
        taken, self._dropped = self._dropped, []
        return [each for each in taken if each.group not in failed]

    def _add(self, groups: Any, batch: Any, steps: list[int]) -> None:
        for group, prompt, index, step in zip(groups, batch[PROMPT], batch[INDEX], steps, strict=True):
            self._rows[group] = _Row(prompt, index, step)

    def _compare(self, step: int, trained: set[str]) -> None:
        present = list_groups()
        for group in [group for group in self._rows if group not in present]:
            row = self._rows.pop(group)
            if group not in trained:
                reason = self._reason(row, step)
                self._dropped.append(
                    FailedSample(group, None, row.prompt, row.index, row.step, False, reason, outcome="dropped")
                )

    def _reason(self, row: _Row, step: int) -> str:
        age = step - row.step + 1
        if self._max_age is not None and age > self._max_age:
            return f"too old: {age} steps, and max_off_policy_threshold is {self._max_age}"
        metric = getattr(self._sampler, "filter_groups_metric", None)
        why = (
            "it has failed or has no samples"
            if metric is None
            else f"equal values of {metric}, or more groups than the step needs"
        )
        return f"{type(self._sampler).__name__} has dropped it: {why}"
