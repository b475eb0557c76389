"""The step of a trainer that has not ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .results import Group

if TYPE_CHECKING:
    from .protocol import RequestFailure


class StepFailed(Exception):
    """No group of a step can be trained: all have failed, or were aborted. The step has ended, and the next `round` is
    the next step."""

    def __init__(self, step: int, status: dict[str, Any]) -> None:
        # As a copy is made with: exceptions travel between processes.
        super().__init__(step, status)
        self.step = step
        #: The last samples that failed, with their reasons.
        self.failures: list[RequestFailure] = status.get("lastFailures", [])

    def __str__(self) -> str:
        step, status = self.args
        failed, dropped = status["failedGroups"], status["droppedGroups"]
        return f"Step {step} has no groups: {failed} have failed, {dropped} were aborted or timed out"


class OpenStep:
    """The groups of one step that were yielded, and what was reported about them."""

    def __init__(self) -> None:
        self.number = 0
        self.groups: dict[str, Group] = {}
        #: Those that are not trained, as their rewards are equal.
        self.excluded: set[str] = set()
        #: As they were reported, in case Redis loses them.
        self.rewards: dict[str, list[float]] = {}

    @property
    def trained(self) -> list[Group]:
        """Those that count as trained."""
        return [group for group in self.groups.values() if group.id not in self.excluded]

    def samples_trained(self) -> dict[str, int]:
        """How many samples each of them has."""
        return {group.id: len(group.samples) for group in self.trained}

    def clear(self) -> None:
        self.groups, self.excluded, self.rewards = {}, set(), {}
