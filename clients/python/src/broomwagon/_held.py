"""Leases and attempts that a worker holds, with the numbers that its heartbeat carries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

DIGEST_MODULUS = 2**40

#: Why work is stopped. After `fenced` and `expired` nothing is reported, since another worker may have the work.
StopCause = Literal["cut", "abort", "move", "lease-lost", "timeout", "shutdown", "expired", "fenced"]


@dataclass(frozen=True)
class WorkerEpoch:
    """One registration of a worker. The next registration ends this epoch."""

    worker_id: str
    epoch: str

    @property
    def body(self) -> dict[str, Any]:
        """The fields that fence every message of the worker."""
        return {"workerId": self.worker_id, "workerEpoch": self.epoch}


class Stoppable(Protocol):
    """Work that a command or the end of an epoch can stop."""

    def stop(self, cause: StopCause) -> None: ...


class Movable(Stoppable, Protocol):
    """Work under a lease that a command can move to another server."""

    def move(self, target: dict[str, Any]) -> None:
        """:param target: `targetServerId`; with `targetEpoch`, only this epoch of the server"""


@dataclass
class HeldLease:
    """A lease of this worker. `releasing`: the release was sent, so Redis may have removed the lease."""

    lease_id: str
    work: Movable
    releasing: bool = False


class HeldLeases:
    """The leases that this worker holds or has asked for, by acquireId."""

    def __init__(self) -> None:
        self._held: dict[str, HeldLease] = {}
        self._asked: set[str] = set()
        #: Sum of the sequences of the leaseIds, modulo 2^40.
        self.digest = 0

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[HeldLease]:
        return iter(list(self._held.values()))

    def asking(self, acquire_id: str) -> None:
        """Notes an acquire. Until `granted` or `dropped`, its lease may exist although no reply has come."""
        self._asked.add(acquire_id)

    def granted(self, acquire_id: str, lease_id: str, work: Movable) -> None:
        self._asked.discard(acquire_id)
        self._held[acquire_id] = HeldLease(lease_id, work)
        self.digest = (self.digest + _sequence_of(lease_id)) % DIGEST_MODULUS

    def releasing(self, acquire_id: str) -> None:
        if lease := self._held.get(acquire_id):
            lease.releasing = True

    def dropped(self, acquire_id: str) -> None:
        self._asked.discard(acquire_id)
        if lease := self._held.pop(acquire_id, None):
            self.digest = (self.digest - _sequence_of(lease.lease_id)) % DIGEST_MODULUS

    def forget_all(self) -> None:
        """Stops all work of an expired epoch and removes its leases."""
        held = list(self)
        self._held.clear()
        self._asked.clear()
        self.digest = 0
        for lease in held:
            lease.work.stop("fenced")

    def is_expected(self, lease_id: str) -> bool:
        """Whether the lease is held, or the reply with the lease may still come."""
        return _acquire_of(lease_id) in self._asked or self.find(lease_id) is not None

    def find(self, lease_id: str) -> HeldLease | None:
        lease = self._held.get(_acquire_of(lease_id))
        return lease if lease and lease.lease_id == lease_id else None


class HeldAttempts:
    """The attempts that this worker runs, by request and attempt."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str], Stoppable] = {}

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, key: tuple[str, str]) -> bool:
        return key in self._held

    def keys(self) -> list[tuple[str, str]]:
        return list(self._held)

    def add(self, key: tuple[str, str], work: Stoppable) -> None:
        self._held[key] = work

    def remove(self, key: tuple[str, str]) -> None:
        self._held.pop(key, None)

    def stop(self, key: tuple[str, str], cause: StopCause) -> None:
        if work := self._held.get(key):
            work.stop(cause)

    def stop_all(self, cause: StopCause) -> None:
        for work in list(self._held.values()):
            work.stop(cause)

    def forget_all(self) -> None:
        """Stops and removes all attempts of an expired epoch."""
        self.stop_all("fenced")
        self._held.clear()


def _acquire_of(lease_id: str) -> str:
    return lease_id.partition(".")[2]


def _sequence_of(lease_id: str) -> int:
    return int(lease_id.partition(".")[0]) % DIGEST_MODULUS
