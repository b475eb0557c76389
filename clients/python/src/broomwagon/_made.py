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
        """
        :param logprobs: of each token; others are no log probabilities of these tokens and count as None
        :param count: of the tokens; an engine may return no ids
        """
        self.count += count
        self._versions.append(weight_version)
        self._token_ids.extend(token_ids)
        self._text += text
        self._logprobs.extend(logprobs if len(logprobs) == count else [None] * count)

    def payload(self, engine_fields: dict[str, Any]) -> dict[str, Any]:
        """A copy, in the form of the payload store."""
        made: dict[str, Any] = {"text": self._text, "engineFields": engine_fields}
        # Ids of some tokens would be read as the ids of all tokens.
        if len(self._token_ids) == self.count:
            made["tokenIds"] = list(self._token_ids)
        if any(value is not None for value in self._logprobs):
            made["logprobs"] = list(self._logprobs)
        return made

    def weight_versions(self) -> dict[str, int]:
        """Fields of a segment. There must be tokens."""
        first, last = min(self._versions), max(self._versions)
        return {"weightVersion": first} if first == last else {"weightVersion": first, "toWeightVersion": last}
