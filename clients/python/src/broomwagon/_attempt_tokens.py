"""The tokens and the state of a sample, in one of its attempts."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from ._arguments import check_count, check_logprobs, check_token_ids
from ._loop_state import LoopState
from ._made import AddedTokens, MadeTokens, Source, source_of_segment

logger = logging.getLogger("broomwagon")

#: A function that stores a payload with a number of tokens, and returns its reference.
Store = Callable[[int, dict[str, Any]], Awaitable[str]]

#: The field of `engineFields` that has the state of the agent loop.
STATE = "agent_state"


class AttemptTokens:
    """Tokens of earlier attempts and of this attempt."""

    def __init__(self, claim: dict[str, Any]) -> None:
        self._claim = claim
        self._made = MadeTokens()
        self._source: Source | None = None
        self._saved_tokens = 0
        self._lacks_ids = False
        self.earlier_count = 0
        #: Token ids of all attempts; empty if some tokens have no ids.
        self.token_ids: list[int] = []
        #: Text of all attempts.
        self.text = ""
        self.state = LoopState()
        self.load([])

    @property
    def made_count(self) -> int:
        """Tokens of this attempt."""
        return self._made.count

    @property
    def generated_count(self) -> int:
        """Tokens of this attempt that engines have generated."""
        return self._made.generated_count

    @property
    def left(self) -> int:
        """Number of tokens that the budget of the sample still allows."""
        return max(0, int(self._claim["maxTokens"]) - self.earlier_count - self.made_count)

    def load(self, payloads: list[dict[str, Any]]) -> None:
        """Begins with the segments of the claim.

        :param payloads: the `SegmentPayload` of each segment; empty before they are read
        """
        segments = self._claim["segments"]
        self.earlier_count = sum(segment["tokenCount"] for segment in segments)
        if segments:
            self._source = source_of_segment(segments[-1])
        for payload in payloads:
            self._join(payload.get("tokenIds") or [], payload.get("text", ""), "tokenIds" in payload)
            if STATE in payload.get("engineFields", {}):
                self.state.load(payload["engineFields"][STATE])

    def use(self, source: Source) -> None:
        """Sets the server of all tokens that are added from now on."""
        self._source = source

    def add(
        self,
        token_ids: Sequence[int],
        text: str,
        logprobs: Sequence[float | None],
        token_count: int | None,
        state: dict[str, Any] | None,
        *,
        is_generated: bool,
    ) -> None:
        """Adds tokens, and the state of the loop that knows them.

        :raises InvalidArgument: an argument is wrong; nothing is added
        :raises RuntimeError: no attempt of the sample has had a server
        """
        if self._source is None:
            raise RuntimeError("The first tokens of a sample are added within `async with attempt.server()`")
        ids = check_token_ids(token_ids)
        count = len(ids) if token_count is None else check_count("token_count", token_count, 0)
        added = AddedTokens(ids, text, check_logprobs(logprobs), count, self._source, is_generated)
        copy = None if state is None else self.state.check(state)
        self.state.before_call(len(self._made))
        self._made.add(added)
        if copy is not None:
            self.state.replace(copy, len(self._made))
        self._join(ids, text, len(ids) == count)

    async def save(self, store: Store, report: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        """Stores all tokens with the state and reports their segment, if there are new tokens."""
        if self._made.count == self._saved_tokens:
            return
        # Tokens that are added during this save belong to the next save.
        count = self._made.count
        self.state.confirm(len(self._made))
        if (segment := await self.segment(store, is_finished=True)) is not None:
            await report(segment)
            self._saved_tokens = count

    async def segment(self, store: Store, *, is_finished: bool) -> dict[str, Any] | None:
        """Stores the tokens of this attempt with the state, in one payload. None without tokens.

        :param is_finished: stores all tokens; otherwise only the tokens that the state knows
        """
        known = len(self._made) if is_finished else self.state.known_calls(len(self._made))
        made = self._made.first(known)
        if made.count < self._made.count:
            logger.warning(
                "%s of %s tokens of %s are generated again: its loop was interrupted after it had added them, and "
                "before it had changed its state. Pass the state to `add`: attempt.add(..., state=...)",
                self._made.count - made.count,
                self._made.count,
                self._claim["requestId"],
            )
        if made.count == 0:
            return None
        payload = {**made.payload(), "engineFields": {STATE: self.state.stored}}
        fields = made.segment()
        return {"attempt": self._claim["attempt"], **fields, "ref": await store(made.count, payload)}

    def _join(self, token_ids: Sequence[int], text: str, are_all: bool) -> None:
        self._lacks_ids = self._lacks_ids or not are_all
        if self._lacks_ids:
            self.token_ids.clear()
        else:
            self.token_ids.extend(token_ids)
        self.text += text
