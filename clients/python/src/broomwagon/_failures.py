"""Groups of a step that ended without training, and their report to the trainer."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Literal, get_args

from ._arguments import InvalidArgument
from .results import Failure, Group

logger = logging.getLogger("broomwagon")

#: Reaction of a loop over a round to a group that ended without training.
OnFailed = Literal["warn", "yield", "raise"]
#: Maximum failures that a warning names.
MAX_NAMED = 3


class GroupFailed(Exception):
    """A group ended without training, and `on_failed` is `raise`. The next `round` continues the step and does not
    raise for this group again."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure = failure

    def __str__(self) -> str:
        return str(self.failure)


class FailedGroups:
    """Groups of the open step that have ended without training. Between two steps: groups of the last step."""

    def __init__(self, job: str, on_failed: OnFailed) -> None:
        if on_failed not in get_args(OnFailed):
            raise InvalidArgument(f"on_failed is one of {get_args(OnFailed)}, not {on_failed!r}", field="on_failed")
        self._job = job
        self._on_failed = on_failed
        self._step = 0
        self.found: dict[str, Failure] = {}
        #: Ids of groups of earlier steps, because the next round also lists groups of a cancelled round.
        self._reported: set[str] = set()

    def begin(self, step: int) -> None:
        """Sets the step of all groups that are added from now on."""
        if step != self._step:
            self._reported.update(self.found)
            self._step, self.found = step, {}

    def is_new(self, failure: Failure) -> bool:
        return failure.group_id not in self.found and failure.group_id not in self._reported

    def take(self, failure: Failure) -> Group | None:
        """Notes a failure. Returns a group if the loop must yield the failure.

        :raises GroupFailed: the failure is new, and `on_failed` is `raise`
        """
        if not self.is_new(failure):
            return None
        self.found[failure.group_id] = failure
        if self._on_failed == "raise":
            raise GroupFailed(failure)
        if self._on_failed == "warn":
            return None
        prompt = "" if failure.prompt is None else failure.prompt
        return Group(failure.group_id, prompt, [], cuts=0, first_step=failure.first_step, failure=failure)

    def leave(self) -> None:
        """Forgets the groups of the step, which is read again from its beginning."""
        self.found = {}

    def restored(self) -> None:
        """Forgets all groups after the job was returned to an earlier state: the same groups may end again."""
        self._step, self.found, self._reported = 0, {}, set()

    def warn(self, trained: int) -> None:
        """Logs one warning for the step, if a group ended without training."""
        if not self.found:
            return
        failures = list(self.found.values())
        named = "; ".join(str(failure) for failure in failures[:MAX_NAMED])
        more = f"; and {len(failures) - MAX_NAMED} more" if len(failures) > MAX_NAMED else ""
        message = "Step %s of job %s trains %s groups without %s that failed or were dropped (Rollout.failed): %s%s"
        logger.warning(message, self._step, self._job, trained, len(failures), named, more)

    def metrics(self) -> dict[str, float]:
        """Counts of the step, also by reason."""
        outcomes = Counter(failure.outcome for failure in self.found.values())
        reasons = Counter(failure.reason for failure in self.found.values())
        return {
            "rollout/failed_groups": float(outcomes["failed"]),
            "rollout/dropped_groups": float(outcomes["dropped"]),
            **{f"rollout/lost_groups/{reason}": float(count) for reason, count in reasons.items()},
        }
