"""The change of weights without asyncio."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ._wait import Wait
from .weights import Weights as AsyncWeights

if TYPE_CHECKING:
    from .protocol import WeightsStatusReply, WeightSyncMode, WeightSyncReply


class Weights:
    """The change of weights of a pool: as `broomwagon.Weights`."""

    def __init__(self, weights: AsyncWeights, wait: Wait) -> None:
        self._weights = weights
        self._wait = wait

    def begin(
        self,
        version: int,
        *,
        mode: WeightSyncMode = "abort",
        sync_id: str | None = None,
        deadline: float = 120.0,
        wait: float = 20.0,
        job: str | None = None,
        trainer_epoch: str | None = None,
    ) -> WeightSyncReply:
        """Stops leases and claims until `commit`, `rollback` or the deadline: as `broomwagon.Weights.begin`."""
        begun = self._weights.begin(
            version,
            mode=mode,
            sync_id=sync_id,
            deadline=deadline,
            wait=wait,
            job=job,
            trainer_epoch=trainer_epoch,
        )
        return self._wait(begun)

    def report(self, version: int, servers: Iterable[str] | None = None) -> list[str]:
        """Reports that engines have these weights: as `broomwagon.Weights.report`."""
        return self._wait(self._weights.report(version, servers))

    def commit(self, sync_id: str, *, trainer_epoch: str | None = None) -> WeightSyncReply:
        """Resumes the pool with the new weights: as `broomwagon.Weights.commit`."""
        return self._wait(self._weights.commit(sync_id, trainer_epoch=trainer_epoch))

    def rollback(self, sync_id: str, *, trainer_epoch: str | None = None) -> WeightSyncReply:
        """Resumes the pool with its weights before the change: as `broomwagon.Weights.rollback`."""
        return self._wait(self._weights.rollback(sync_id, trainer_epoch=trainer_epoch))

    def status(self, sync_id: str | None = None) -> WeightsStatusReply:
        """The weight version of the pool, and a change of weights: the given change, or the change that runs."""
        return self._wait(self._weights.status(sync_id))
