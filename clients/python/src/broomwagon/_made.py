"""The tokens that one attempt has generated, on one or more weight versions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class MadeTokens:
    def __init__(self) -> None:
        self.count = 0
        self._versions: list[int] = []
        self._token_ids: list[int] = []
        self._text = ""
        self._logprobs: list[float] = []

    def add(
        self,
        token_ids: Sequence[int],
        text: str,
        logprobs: Sequence[float],
        token_count: int | None,
        weight_version: int,
    ) -> None:
        """:param token_count: for an engine that returns no token ids"""
        self.count += len(token_ids) if token_count is None else int(token_count)
        self._versions.append(weight_version)
        self._token_ids.extend(token_ids)
        self._text += text
        self._logprobs.extend(logprobs)

    def payload(self, engine_fields: dict[str, Any]) -> dict[str, Any]:
        """A copy, in the form of the payload store."""
        made: dict[str, Any] = {"text": self._text, "engineFields": engine_fields}
        for name, values in (("tokenIds", self._token_ids), ("logprobs", self._logprobs)):
            # A part of them would be read as those of all tokens.
            if len(values) == self.count:
                made[name] = list(values)
        return made

    def weight_versions(self) -> dict[str, int]:
        """Fields of a segment. There must be tokens."""
        first, last = min(self._versions), max(self._versions)
        return {"weightVersion": first} if first == last else {"weightVersion": first, "toWeightVersion": last}
