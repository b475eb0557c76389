"""The state of an agent loop, and which of its tokens the state knows."""

from __future__ import annotations

import json
from typing import Any

from ._arguments import InvalidArgument, encoded


class LoopState:
    """Keeps tokens and state of a loop together, or neither. A loop may be cancelled after it has added the tokens of
    a turn and before it has changed its state. Such tokens are not kept, because the loop generates the turn again. A
    loop without a state continues from its tokens, so all its tokens are kept.

    Calls that add tokens are counted from 0.
    """

    def __init__(self) -> None:
        self._value: dict[str, Any] = {}
        self._is_used = False
        #: Number of calls that the state knows.
        self._known_calls = 0
        #: The encoded state at the first call that the state does not know.
        self._unchanged = b""

    @property
    def value(self) -> dict[str, Any]:
        """The state, for the loop."""
        self._is_used = True
        return self._value

    @value.setter
    def value(self, value: dict[str, Any]) -> None:
        self._is_used = True
        self._value = value

    @property
    def stored(self) -> dict[str, Any]:
        """The state, to be stored."""
        return self._value

    def load(self, value: dict[str, Any]) -> None:
        """Takes the state of an earlier attempt."""
        self._value = value
        self._is_used = bool(value)

    def check(self, value: dict[str, Any]) -> dict[str, Any]:
        """Copies a state, so that later changes by the loop do not reach the copy.

        :raises InvalidArgument: JSON cannot have the state
        """
        if not isinstance(value, dict):
            raise InvalidArgument(f"state must be a dict, not {type(value).__name__}", field="state")
        try:
            copy: dict[str, Any] = json.loads(encoded(value))
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidArgument(f"JSON cannot have the state: {error}", field="state") from error
        return copy

    def before_call(self, calls: int) -> None:
        """Notes the state before a call adds tokens.

        :param calls: number of earlier calls
        """
        now = encoded(self._value)
        if self._known_calls < calls and now != self._unchanged:
            self._known_calls = calls
        if self._known_calls == calls:
            self._unchanged = now

    def replace(self, value: dict[str, Any], calls: int) -> None:
        """Replaces the state by a value that has the effects of the first `calls` calls."""
        self.value = value
        self._known_calls = calls

    def confirm(self, calls: int) -> None:
        """Notes that the state has the effects of the first `calls` calls, as the loop has confirmed."""
        self._known_calls = calls

    def known_calls(self, calls: int) -> int:
        """Number of these calls that are kept with the state if the loop is interrupted now."""
        if not self._is_used:
            return calls
        if self._known_calls < calls and encoded(self._value) != self._unchanged:
            self._known_calls = calls
        return self._known_calls
