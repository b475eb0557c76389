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
        self._logprobs: list[float | None] = []

    def add(
        self,
        token_ids: Sequence[int],
        text: str,
        logprobs: Sequence[float | None],
        count: int,
        weight_version: int,
    ) -> None:
        """:param count: of the tokens; an engine may return no ids"""
        self.count += count
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
