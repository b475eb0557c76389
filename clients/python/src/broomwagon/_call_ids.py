"""Operations whose calls have an id each."""

from __future__ import annotations

#: Fields of operations that name a call, so that a repeat of it has no further effect.
CALL_IDS = {"prompt.remember": "rememberId", "server.register": "registrationId"}
