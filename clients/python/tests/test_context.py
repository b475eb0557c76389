"""Budgets above the context of the engines."""

from __future__ import annotations

from typing import Any

import pytest

from broomwagon import Client, errors


async def context_of(client: Client) -> int:
    reply = await client.call("server.list", {})
    return max(server["capabilities"]["maxModelTokens"] for server in reply["servers"])


@pytest.mark.short
async def test_a_budget_is_clipped_to_the_context_or_refused(client: Client, served: str) -> None:
    context = await context_of(client)
    options: Any = {"groups": 1, "samples": 1}
    with pytest.raises(errors.ContextTooLong, match="never fit") as refused:
        await anext(client.rollout(served, max_tokens=context, **options).round(["text"], "wait"))
    assert refused.value.field == "max_tokens"
    [group] = [
        group async for group in client.rollout(served, max_tokens=context, **options).round([[1, 2, 3]], "wait")
    ]
    assert 0 < group.samples[0].token_count < context
