"""The step of a trainer that has not ended."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from .results import Group, Sample

if TYPE_CHECKING:
    from .protocol import RequestFailure


class StepFailed(Exception):
    """No group of a step can be trained: all groups have failed or were aborted. The step has ended, and the next
    `round` is the next step."""

    def __init__(self, step: int, status: dict[str, Any]) -> None:
        # When the exception goes to another process, pickle makes a copy from these arguments.
        super().__init__(step, status)
        self.step = step
        #: The last samples that failed, with their reasons.
        self.failures: list[RequestFailure] = status.get("lastFailures", [])

    def __str__(self) -> str:
        step, status = self.args
        failed, dropped = status["failedGroups"], status["droppedGroups"]
        return f"Step {step} has no groups: {failed} have failed, {dropped} were aborted or timed out"


class FreedSamples(Sequence[Sample]):
    """Replaces the samples of a group that the caller has dropped. Each use raises LookupError."""

    def __init__(self, group_id: str) -> None:
        self._group_id = group_id

    def __getitem__(self, index: Any) -> NoReturn:
        raise LookupError(
            f"The tokens of group {self._group_id} are freed, because the loop kept no reference to the group; "
            "keep the groups that it yields until the step has ended"
        )

    def __len__(self) -> int:
        return self[0]

    def __iter__(self) -> Iterator[Sample]:
        return self[0]


class YieldedGroup:
    """A yielded group without a reference to its samples, so that they are freed when the caller drops the group."""

    def __init__(self, group: Group) -> None:
        self._group = weakref.ref(group)
        self._without_samples = replace(group, samples=FreedSamples(group.id))
        self.lengths = [sample.token_count for sample in group.samples]
        #: Number of samples that have used up their budget.
        self.cut_off = sum(sample.finish_reason == "length" for sample in group.samples)

    @property
    def group(self) -> Group:
        return self._group() or self._without_samples


class OpenStep:
    """The groups of one step that were yielded, and the rewards that were reported for them."""

    def __init__(self) -> None:
        self.number = 0
        self.groups: dict[str, YieldedGroup] = {}
        #: Ids of groups that are not trained, because their rewards are equal.
        self.excluded: set[str] = set()
        #: Reported rewards by group, in case Redis loses them.
        self.rewards: dict[str, list[float]] = {}

    @property
    def trained(self) -> dict[str, YieldedGroup]:
        """The groups that count as trained."""
        return {group_id: group for group_id, group in self.groups.items() if group_id not in self.excluded}

    def samples_trained(self) -> dict[str, int]:
        """Number of samples of each group that counts as trained."""
        return {group_id: len(group.lengths) for group_id, group in self.trained.items()}

    def clear(self) -> None:
        self.groups, self.excluded, self.rewards = {}, set(), {}
