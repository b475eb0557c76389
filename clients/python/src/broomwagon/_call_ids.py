"""Operations in which each call has an id."""

from __future__ import annotations

#: The field for the id of a call, by operation. A repeat with the same id has no further effect.
CALL_IDS = {"prompt.remember": "rememberId", "server.register": "registrationId"}
