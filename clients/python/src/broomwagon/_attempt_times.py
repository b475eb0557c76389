"""The times of one attempt."""

from __future__ import annotations

import random
import time
from typing import Any

#: Pause of a sample after its second setback, seconds. Each further setback doubles the pause.
FIRST_PAUSE = 2.0
MAX_PAUSE = 60.0


def pause_after(setbacks: int) -> float:
    """Seconds before the loop runs, as in built-in workers. There is no pause after the first setback, since another
    server gets the sample. Then each pause is twice as long, less a random part of up to a half.

    :param setbacks: attempts in a row that ended badly, without a further token
    """
    if setbacks <= 1:
        return 0.0
    return float(min(FIRST_PAUSE * 2.0 ** min(setbacks - 2, 30), MAX_PAUSE) * (1 - random.random() / 2))


class AttemptTimes:
    def __init__(self, claim: dict[str, Any]) -> None:
        self._claimed_at = time.monotonic()
        self._leased_at: float | None = None
        self._timeout_ms: int | None = claim.get("timeoutMs")
        self._generated_ms: int = claim.get("generatedMs", 0)

    @property
    def left(self) -> float | None:
        """Seconds of generation time that earlier attempts have left; None without a limit."""
        return None if self._timeout_ms is None else (self._timeout_ms - self._generated_ms) / 1000

    def begin(self) -> None:
        """Starts the clock: the attempt has its first server."""
        self._leased_at = time.monotonic()

    def generated(self) -> dict[str, int]:
        """Generation time so far, as a field of a body; empty for a sample without a timeout."""
        if self._timeout_ms is None or self._leased_at is None:
            return {}
        return {"generatedMs": _ms_since(self._leased_at)}

    def run(self) -> dict[str, int]:
        """Milliseconds from the claim to the first server, and from the claim to the end, now. Call `begin` before."""
        assert self._leased_at is not None
        return {"leasedMs": round(1000 * (self._leased_at - self._claimed_at)), "endedMs": _ms_since(self._claimed_at)}


def _ms_since(at: float) -> int:
    return round(1000 * (time.monotonic() - at))
