"""Types of the parameters of `broomwagon.Client` and its methods, for clients that pass them on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from ._failures import OnFailed
    from .protocol import AbortScope, EngineFeature, SamplingParameters


class ClientOptions(TypedDict, total=False):
    """Parameters of `broomwagon.Client` after its URL."""

    pool: str | None
    worker_id: str | None
    worker_ttl: float
    unclaimed_after: float
    connect_timeout: float


class LeaseOptions(TypedDict, total=False):
    """Parameters of `broomwagon.Client.lease` after the id of the request."""

    session_id: str | None
    parent_session_id: str | None
    job: str | None
    group_id: str | None
    priority: int | None
    context_tokens: int | None
    weight_version: int | None
    min_weight_version: int | None
    max_weight_lag: int | None
    exclude_servers: Sequence[str] | None
    avoid_servers: Sequence[str] | None
    labels: Mapping[str, str] | None
    needs: Sequence[EngineFeature] | None
    dp_rank: int | None
    bound_server_id: str | None
    bound_server_epoch: str | None
    attempt: str | None
    explain: bool | None
    timeout: float


class RolloutOptions(TypedDict, total=False):
    """Parameters of `broomwagon.Client.rollout` after the job."""

    groups: int
    samples: int
    max_tokens: int
    sampling: SamplingParameters | Mapping[str, Any] | None
    min_samples: int | None
    timeout: float | None
    abort_scope: AbortScope | None
    orphan_after: float | None
    priority: int | None
    worker_kind: str | None
    on_failed: OnFailed
    progress: bool
    any_rank: bool
