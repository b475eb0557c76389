"""Types of the protocol, with the names of the wire."""

# Made by `npm run schema` from docs/protocol/asyncapi.json. Do not edit.

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, Union, overload

if TYPE_CHECKING:
    from typing_extensions import NotRequired

class AbortAttemptsCommand(TypedDict):
    """`worker.<workerId>.abort`, sent to the worker at least once. The worker stops the attempts on their
    engines and ends them with `request.fail`. The worker also stops the calls of the leases, and ends
    the leases with `lb.release`.
    """

    workerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. An epoch
    is opaque, and compared for equality only. Epochs are random instead of counted, because a Redis
    that loses its last changes would give the same number twice.
    """

    cause: Literal["cut", "abort", "move", "expired"]
    """Reason of the command. `cut`: the group was cut, or the weights of the pool change. `abort`: the
    request was aborted. `move`: the request is being moved. `expired`: the worker epoch has expired.
    """

    attempts: list[AbortedAttempt]
    """Attempts to stop."""

    leases: NotRequired[list[AbortedLease]]
    """Leases to end; absent if there are none."""


class AbortRequestsReply(TypedDict):
    """Reply of `request.abort`."""

    cursor: NotRequired[int]
    """Cursor of the next page, to be sent with the same body; absent on the last page."""

    abortId: str
    """Id of the abort, from the request."""

    results: list[AbortResult]
    """One result for each request of the page."""


class AbortRequestsRequest(TypedDict):
    """`request.abort`: stops the requests of exactly one selector: `requestIds`, `sessionId`, `groupId`
    (with `job`), `workerId`, `serverId`, `roundId` (with `job`), `job` alone, or `all`. Later requests
    are not affected. Exception: an unknown request or group that the abort names ends `dropped` if a
    trainer submits it within ten minutes. An acquire that waits for a server is answered ABORTED. Later
    acquires are refused only with `refuseAcquiresMs`, because a caller may use one requestId for all
    turns of a trajectory.
    """

    abortId: str
    """Id of this abort, for idempotency. The same id reads the next page, and later the result."""

    requestIds: NotRequired[list[str]]
    """Requests of rounds, or requestIds of acquires by callers that only route."""

    refuseAcquiresMs: NotRequired[int]
    """With `requestIds`: time in which acquires of unknown requests are answered ABORTED, milliseconds."""

    scope: NotRequired[AbortScope]
    """Scope of an abort by `requestIds`, `sessionId`, `workerId` or `serverId`. `sample`: only the
    request. A group with fewer than `minSamples` other samples is dropped. `group`: the whole group.
    Default: `abortScope` of the round.
    """

    sessionId: NotRequired[str]
    """The requests that acquired leases with this session."""

    groupId: NotRequired[str]
    """The requests of this group; with `job`."""

    workerId: NotRequired[str]
    """The requests of this worker."""

    serverId: NotRequired[str]
    """The requests that run on this server."""

    roundId: NotRequired[str]
    """The requests of this round; with `job`."""

    job: NotRequired[str]
    """The job of `groupId` or `roundId`. Without both: all requests of the job."""

    all: NotRequired[Literal[True]]
    """All requests of the pool."""

    waitMs: NotRequired[int]
    """Wait at most this long for the confirmations of the page, milliseconds."""

    reason: NotRequired[str]
    """Reason, which is stored with the dropped requests."""

    cursor: NotRequired[int]
    """Cursor of the previous page."""

    limit: NotRequired[int]
    """Maximum results of the page."""


class AbortResult(TypedDict):
    """Result for one aborted request. The tokens of the request are kept as long as this answer."""

    segments: NotRequired[list[Segment]]
    """Segments of ended attempts, in order."""

    segmentsFollow: NotRequired[Literal[True]]
    """The segments do not fit this message, so `segments` is empty. Read the segments with
    `request.segments`.
    """

    requestId: str
    """Id of a request: `<job>/<groupId>/<sampleIndex>`, with `~0` for `~` and `~1` for `/` in job and
    group; unique in the pool.
    """

    outcome: Literal["aborted", "aborting", "already-finished", "not-found"]
    """`aborted`: the worker has confirmed the stop in the engine, or no worker had the request.
    `aborting`: not confirmed yet; the command is repeated. `already-finished`: the request had ended
    before. `not-found`: the request is unknown.
    """

    tokenCount: NotRequired[int]
    """Tokens of all attempts of the request."""

    leaseId: NotRequired[str]
    """Lease of the request, for a caller that only routes."""

    unconfirmed: NotRequired[bool]
    """The worker has not confirmed within the deadline and had no lease: the request was ended without a
    confirmation.
    """

    fenced: NotRequired[bool]
    """The worker has not confirmed within the deadline, so the epoch of the server was expired."""


class AbortedAttempt(TypedDict):
    """An attempt to stop."""

    requestId: str
    """Id of a request: `<job>/<groupId>/<sampleIndex>`, with `~0` for `~` and `~1` for `/` in job and
    group; unique in the pool.
    """

    attempt: str
    """Fencing number of one attempt of a request: `<number>-<random>`. The number counts the attempts, for
    display. Services compare the whole text. A request that was never claimed has the attempt `0`.
    """


class AbortedLease(TypedDict):
    """A lease of a caller that only routes."""

    leaseId: str
    """Id of a lease, `<sequence>.<acquireId>`. The sequence distinguishes leases with the same acquireId."""

    requestId: str
    """Request that the acquire named."""


class Acceptance(TypedDict):
    """Acceptance of one range of lengths."""

    fromTokens: float
    """Shortest length of the range."""

    toTokens: float
    """End of the range, exclusive."""

    ratio: float
    """Share of the trained samples / share of the started samples. Weight a trained sample by the inverse."""


class AcquireItem(TypedDict):
    """One acquire; part of `lb.acquire-many` and, with the worker, of `lb.acquire`."""

    acquireId: str
    """Id of the acquire, for idempotency: a repeat gets the same lease while it lives and for 120 s
    afterwards.
    """

    requestId: str
    """Request of the lease, for correlation only. A trajectory may use one requestId for all turns."""

    attempt: NotRequired[str]
    """Attempt of the claimed request, as `lb.leases` shows it."""

    sessionId: NotRequired[str]
    """Session: turns of one session stay on one server."""

    parentSessionId: NotRequired[str]
    """Session that has started this session as a subagent; only with `sessionAdmission`. The parent of the
    first acquire stays: SESSION_CONFLICT for another one, and for a circle of parents.
    """

    job: NotRequired[str]
    """Job of the session, which ends when the job is deleted; only with `sessionAdmission`. Default: the
    job of a `groupId` that is composed of job and group.
    """

    groupId: NotRequired[str]
    """Group of the request, for spread or affinity."""

    priority: NotRequired[int]
    """Priority among waiting acquires, from 0 (lowest) to 9."""

    contextTokens: NotRequired[int]
    """Context of the request, tokens."""

    weightVersion: NotRequired[int]
    """Only a server with exactly this weight version."""

    minWeightVersion: NotRequired[int]
    """Only a server with at least this weight version."""

    maxWeightLag: NotRequired[int]
    """Only a server at most this many versions behind the newest version among servers of the pool that
    take leases.
    """

    excludeServers: NotRequired[list[str]]
    """Servers that may not get the lease, for example a server that has just failed."""

    avoidServers: NotRequired[list[str]]
    """Servers on which the request has just failed: they get the lease only while no other server can take
    it.
    """

    labels: NotRequired[dict[str, str]]
    """Only a server that has all these labels."""

    needs: NotRequired[list[EngineFeature]]
    """Required features. A server is left out if its engine is known to lack one."""

    model: NotRequired[str]
    """Model or adapter. A server is left out if its engine is known not to list the model. While all
    engines of the pool list the same models, the model is no constraint. MODEL_NOT_FOUND when no server
    of the pool has the model.
    """

    dpRank: NotRequired[int]
    """Data-parallel rank of the session. The rank is stored with the session and returned with later
    leases.
    """

    boundServerId: NotRequired[str]
    """Server that gets the lease regardless of session and policy. If this server cannot take the lease,
    the usual choice follows, with the branch `bound-unavailable`. The session is bound to the chosen
    server.
    """

    boundServerEpoch: NotRequired[str]
    """Required epoch of `boundServerId`."""

    explain: NotRequired[bool]
    """Store and return the full snapshot of the decision."""

    waitMs: NotRequired[int]
    """Wait at most this long for room, milliseconds; 0 = answer at once."""


class AcquireManyReply(TypedDict):
    """Reply of `lb.acquire-many`."""

    servers: dict[str, GrantedServer]
    """The servers of `leases`, each once."""

    leases: list[Union[GrantedItem, RefusedItem]]
    """Answers in the order of the request."""


class AcquireManyRequest(TypedDict):
    """`lb.acquire-many`: many acquires, which never wait (`waitMs` of each item must be absent or 0). An
    item for which the reply has no room is answered REPLY_FULL: send the item again for the full
    answer. `details.granted` is true if the caller already holds the lease of the item.
    """

    workerId: str
    """Id of a worker, which holds leases and requests, chosen by the worker."""

    workerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. An epoch
    is opaque, and compared for equality only. Epochs are random instead of counted, because a Redis
    that loses its last changes would give the same number twice.
    """

    acquires: list[AcquireItem]
    """The acquires, each with a different acquireId."""


class AcquireRequest(TypedDict):
    """`lb.acquire`"""

    acquireId: str
    """Id of the acquire, for idempotency: a repeat gets the same lease while it lives and for 120 s
    afterwards.
    """

    requestId: str
    """Request of the lease, for correlation only. A trajectory may use one requestId for all turns."""

    attempt: NotRequired[str]
    """Attempt of the claimed request, as `lb.leases` shows it."""

    sessionId: NotRequired[str]
    """Session: turns of one session stay on one server."""

    parentSessionId: NotRequired[str]
    """Session that has started this session as a subagent; only with `sessionAdmission`. The parent of the
    first acquire stays: SESSION_CONFLICT for another one, and for a circle of parents.
    """

    job: NotRequired[str]
    """Job of the session, which ends when the job is deleted; only with `sessionAdmission`. Default: the
    job of a `groupId` that is composed of job and group.
    """

    groupId: NotRequired[str]
    """Group of the request, for spread or affinity."""

    priority: NotRequired[int]
    """Priority among waiting acquires, from 0 (lowest) to 9."""

    contextTokens: NotRequired[int]
    """Context of the request, tokens."""

    weightVersion: NotRequired[int]
    """Only a server with exactly this weight version."""

    minWeightVersion: NotRequired[int]
    """Only a server with at least this weight version."""

    maxWeightLag: NotRequired[int]
    """Only a server at most this many versions behind the newest version among servers of the pool that
    take leases.
    """

    excludeServers: NotRequired[list[str]]
    """Servers that may not get the lease, for example a server that has just failed."""

    avoidServers: NotRequired[list[str]]
    """Servers on which the request has just failed: they get the lease only while no other server can take
    it.
    """

    labels: NotRequired[dict[str, str]]
    """Only a server that has all these labels."""

    needs: NotRequired[list[EngineFeature]]
    """Required features. A server is left out if its engine is known to lack one."""

    model: NotRequired[str]
    """Model or adapter. A server is left out if its engine is known not to list the model. While all
    engines of the pool list the same models, the model is no constraint. MODEL_NOT_FOUND when no server
    of the pool has the model.
    """

    dpRank: NotRequired[int]
    """Data-parallel rank of the session. The rank is stored with the session and returned with later
    leases.
    """

    boundServerId: NotRequired[str]
    """Server that gets the lease regardless of session and policy. If this server cannot take the lease,
    the usual choice follows, with the branch `bound-unavailable`. The session is bound to the chosen
    server.
    """

    boundServerEpoch: NotRequired[str]
    """Required epoch of `boundServerId`."""

    explain: NotRequired[bool]
    """Store and return the full snapshot of the decision."""

    waitMs: NotRequired[int]
    """Wait at most this long for room, milliseconds; 0 = answer at once."""

    workerId: str
    """The worker that will hold the lease."""

    workerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. An epoch
    is opaque, and compared for equality only. Epochs are random instead of counted, because a Redis
    that loses its last changes would give the same number twice.
    """


class AttemptEndedEvent(TypedDict):
    """An attempt ended without a sample. `cut`: the round was completed without the group, or the group
    was requeued. `moved`: the request continues on another server. `stopped`: a change of weights
    stopped the attempt. `returned`: the attempt ended unfinished, e.g. because the engine failed or the
    worker expired. `failed` and `dropped`: the request has ended for good.
    """

    type: Literal["attempt.ended"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool of the event."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    requestId: str
    """Id of the request."""

    roundId: str
    """Round of the attempt."""

    attempt: str
    """Id of the attempt."""

    queuedAtMs: NotRequired[int]
    """When the request became pending, by the clock of Redis, milliseconds since 1970."""

    claimedAtMs: NotRequired[int]
    """When a worker claimed the request, by the clock of Redis, milliseconds since 1970."""

    serverId: NotRequired[str]
    """The server that the worker has reported; absent if the worker has reported none."""

    attemptTokens: int
    """Tokens of this attempt."""

    run: NotRequired[AttemptRun]
    """Measurements of the worker; absent if the attempt had no server, or if the worker has expired."""

    outcome: Literal["cut", "moved", "stopped", "returned", "failed", "dropped"]
    """Outcome for the request."""


class AttemptRun(TypedDict):
    """Server and times of one attempt, as measured by the worker. Times are milliseconds since the claim."""

    serverId: str
    """The server of the lease."""

    weightVersion: int
    """Weight version of the server at the grant of the lease."""

    leasedMs: int
    """Time until the grant of the lease: the wait for a server."""

    firstTokenMs: NotRequired[int]
    """Time until the first token; absent if there was none."""

    endedMs: int
    """Time until the end of the generation."""


class AuditFinding(TypedDict):
    """One fault of the counts."""

    check: str
    """Name of the broken rule."""

    message: str
    """Place of the fault, and its values."""


class AuditPoolReply(TypedDict):
    """Result of an audit."""

    balanced: bool
    """The audit has found no fault."""

    findings: list[AuditFinding]
    """The first 128 findings."""

    findingCount: int
    """Number of all findings."""

    counts: dict[str, int]
    """Counted items, by name."""

    unproven: list[str]
    """The first 128 items that the audit could not decide: jobs with requests that changed all the time,
    and items that were not read and confirmed within 8 s.
    """


class AuditPoolRequest(TypedDict):
    """`pool.audit`: compares the counts of the pool with its leases and requests. An audit ends after 8 s
    with the results so far. A call during an audit gets the result of that audit. `npm run audit` has
    no time limit, and also repairs.
    """


class AutoChoiceBroken(TypedDict):
    """Broken bounds, with any reason of the choice; absent if no bound is broken."""

    measured: NotRequired[list[AutoBound]]
    """Bounds that the ledger of the job breaks."""

    predicted: NotRequired[list[AutoBound]]
    """Bounds that the replay of the last choice breaks."""


class AutoChoiceBest(TypedDict):
    """The fastest policy that keeps the bounds; absent while nothing is known."""

    policy: TailPolicyName
    """How a round treats its slowest groups (libs/policies/src/tail/README.md). `auto` chooses another
    policy for each round, within bounds.
    """

    overProvision: float
    """The fastest policy that keeps the bounds; absent while nothing is known."""


class AutoChoice(TypedDict):
    """Choice of `auto` for a round, and its reason."""

    policy: TailPolicyName
    """The policy of the round; never `auto`."""

    reason: AutoReason
    """Why `auto` chose a policy. `unknown`: too few closed groups for a prediction; the choice is `wait`.
    `best`: the best policy within the bounds. `step`: a step towards the best policy. `predicted`: the
    last choice would break a bound. `measured`: a step back, because the ledger of the job breaks a
    bound. `late`: the replays took too long, so only `wait`, the last choice and the nearest candidates
    were compared.
    """

    broken: NotRequired[AutoChoiceBroken]
    """Broken bounds, with any reason of the choice; absent if no bound is broken."""

    best: NotRequired[AutoChoiceBest]
    """The fastest policy that keeps the bounds; absent while nothing is known."""

    groups: int
    """Number of groups of closed rounds in the predictions."""

    frontier: list[AutoRow]
    """Compared policies; empty while nothing is known, and incomplete for the reason `late`."""


class AutoRow(TypedDict):
    """Prediction of `auto` for one policy, by a replay of the samples of the last rounds. Shares are 0 to
    1.
    """

    policy: TailPolicyName
    """The policy; never `auto`."""

    overProvision: float
    """Launched / needed groups."""

    speed: float
    """Time of a step under `wait` / time of a step under this policy."""

    offPolicyShare: float
    """Trained tokens of older weights / trained tokens."""

    versionSpan: int
    """Highest number of steps between the first token of a group and its training."""

    lengthBias: float
    """Mean length of trained samples / of started samples."""

    wasteShare: float
    """Generated tokens that nobody trains / generated tokens."""

    breaks: list[AutoBound]
    """Bounds that the policy would break; empty for a valid choice."""


class BeginWeightsRequest(TypedDict):
    """`weights.begin`: stops leases and claims until `weights.commit`, `weights.rollback` or the deadline.
    Acquires and claims are answered POOL_PAUSED, at once or after `waitMs`. A repeat with the same
    syncId extends the deadline, for a load that makes progress. The deadline rolls back. Running
    requests are stopped and keep their tokens. A server that was not reported since the begin has
    unknown weights, and takes no leases until it is reported.
    """

    syncId: str
    """Id of the change, for idempotency. A repeat returns the present state, and may extend the deadline."""

    version: int
    """Version of the new weights; not below the version of the pool."""

    mode: WeightSyncMode
    """Treatment of running requests."""

    deadlineMs: NotRequired[int]
    """Time until the rollback, milliseconds, from this call on."""

    waitMs: NotRequired[int]
    """Wait until no request runs, at most this long, milliseconds. Not for `keep`."""

    job: NotRequired[str]
    """With `trainerEpoch`: only the present trainer of this job may end the change."""

    trainerEpoch: NotRequired[str]
    """Epoch of the trainer of `job`."""

    stamp: NotRequired[str]
    """Stamp of the last reply."""


class BlockedReason(TypedDict):
    """Why a round is blocked, and how to unblock it."""

    code: Literal["PAYLOAD_STORE_FULL", "UNAVAILABLE", "STORE_FULL", "NO_SERVER_AVAILABLE", "NO_WORKER_AVAILABLE", "TRAINER_SILENT"]
    """`PAYLOAD_STORE_FULL`: the payload quota of the job is used up, or the payload store has no room.
    `UNAVAILABLE`: the payload store cannot be written. `STORE_FULL`: Redis is near its maxmemory.
    `NO_SERVER_AVAILABLE`: the servers have unknown weights, or other versions than the pool.
    `NO_WORKER_AVAILABLE`: no worker claims requests of the job. `TRAINER_SILENT`: the trainer has not
    called for `orphanAfterMs`.
    """

    reason: NotRequired[Literal["weights-unknown", "weights-differ", "no-worker-of-kind"]]
    """Further reason; only with `NO_SERVER_AVAILABLE` and `NO_WORKER_AVAILABLE`."""

    message: str
    """Advice, as text."""

    sinceMs: NotRequired[int]
    """Start of the block, milliseconds since 1970; only with `PAYLOAD_STORE_FULL` and `UNAVAILABLE`. With
    `TRAINER_SILENT`: last call of the trainer.
    """

    workerKind: NotRequired[str]
    """Kind of worker that the job requires; absent for built-in workers. Only with `no-worker-of-kind`."""

    workerKinds: NotRequired[list[str]]
    """Kinds of the workers that claim requests in the pool ('' = built-in). Only with `no-worker-of-kind`."""


class CancelAcquireReply(TypedDict):
    """Reply of `lb.cancel`."""

    cancelled: bool
    """True if this call ended the wait."""

    reason: Literal["cancelled", "granted", "released", "tombstone", "fenced"]
    """`granted`: the acquire has the lease `leaseId`, which must be released. `tombstone`: the acquire has
    not arrived yet and will be refused. `fenced`: the worker epoch has expired, or the acquire belongs
    to another worker.
    """

    leaseId: NotRequired[str]
    """Id of a lease, `<sequence>.<acquireId>`. The sequence distinguishes leases with the same acquireId."""


class CancelAcquireRequest(TypedDict):
    """`lb.cancel`: ends the wait of an acquire, which is answered RELEASED. A granted lease stays."""

    workerId: str
    """Id of a worker, which holds leases and requests, chosen by the worker."""

    workerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. An epoch
    is opaque, and compared for equality only. Epochs are random instead of counted, because a Redis
    that loses its last changes would give the same number twice.
    """

    acquireId: str
    """The acquire that waits."""


class CancelRoundReply(TypedDict):
    """Reply of `round.cancel`."""

    stamp: str
    """Position of Redis at a reply. Send the latest stamp with the next call that takes a stamp."""

    roundId: str
    """Id of a round of a job, chosen by its trainer."""

    state: Literal["cancelled"]
    """Present state of the round."""

    mode: CancelMode
    """Mode from the request."""

    groups: int
    """Number of groups that are requeued or dropped. `round.status` reports `settled` when all of this is
    done.
    """


class CancelRoundRequest(TypedDict):
    """`round.cancel`: cancels a round that is not closed. The step of the round is not counted, and a
    round with another roundId may be opened. Workers get the same command as for a cut.
    """

    job: str
    """Id of a job, chosen by its trainer."""

    stamp: NotRequired[str]
    """Stamp of the last reply."""

    trainerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. An epoch
    is opaque, and compared for equality only. Epochs are random instead of counted, because a Redis
    that loses its last changes would give the same number twice.
    """

    roundId: str
    """Id of a round of a job, chosen by its trainer."""

    mode: CancelMode
    """`requeue`: all groups of the round, also accepted groups, go to the long-tail queue with all tokens,
    under every policy. `drop`: all groups are dropped, and their tokens count as waste.
    """

    reason: NotRequired[str]
    """Reason in the event `round.cancelled`, and in `group.dropped` of each dropped group."""


class Claim(TypedDict):
    """One request to run. Every later message about the request has its `attempt`."""

    segments: list[Segment]
    """Segments of ended attempts, in order."""

    segmentsFollow: NotRequired[Literal[True]]
    """The segments do not fit this message, so `segments` is empty. Read the segments with
    `request.segments`.
    """

    requestId: str
    """Id of a request: `<job>/<groupId>/<sampleIndex>`, with `~0` for `~` and `~1` for `/` in job and
    group; unique in the pool.
    """

    attempt: str
    """Fencing number of one attempt of a request: `<number>-<random>`. The number counts the attempts, for
    display. Services compare the whole text. A request that was never claimed has the attempt `0`.
    """

    job: str
    """Id of a job, chosen by its trainer."""

    roundId: str
    """Id of a round of a job, chosen by its trainer."""

    groupId: str
    """Id of a group, unique in its job, chosen by the trainer."""

    sampleIndex: int
    """Index of the sample in its group, from 0."""

    promptRef: str
    """Reference of the prompt: JSON of `Prompt`."""

    sampling: SamplingParameters
    """Sampling parameters of the group."""

    maxTokens: int
    """Token budget of the whole sample, including the tokens of the segments."""

    timeoutMs: NotRequired[int]
    """Maximum generation time of the sample over all attempts, milliseconds; `generatedMs` is the used
    part. When the time is over, end the attempt with `request.fail`, reason `timeout`.
    """

    generatedMs: NotRequired[int]
    """Generation time of earlier attempts, milliseconds; absent without `timeoutMs`."""

    weightVersion: int
    """Weight version of the round."""

    boundServerId: NotRequired[str]
    """Target of a move. Send `boundServerId` and `boundServerEpoch` with `lb.acquire`."""

    boundServerEpoch: NotRequired[str]
    """Epoch of the server `boundServerId`."""

    setbacks: NotRequired[int]
    """Number of consecutive attempts, without a new token, that an engine failed or did not serve."""

    avoidServers: NotRequired[list[str]]
    """Servers of the attempts of `setbacks`, latest last, for `lb.acquire`."""

    priority: NotRequired[int]
    """Priority of the round, if any, for `lb.acquire`."""

    traceparent: NotRequired[str]
    """W3C trace context of the `round.open` of the round; absent without a trace. Send this field to the
    engine.
    """


class ClaimReply(TypedDict):
    """Reply of `request.claim`. A reply may have fewer requests than `max`, because its size is limited."""

    claims: list[Claim]
    """The requests; empty if there are none."""


class ClaimRequest(TypedDict):
    """`request.claim`: takes pending requests. An empty reply after `waitMs` is not an error. Errors:
    POOL_PAUSED.
    """

    workerId: str
    """Id of a worker, which holds leases and requests, chosen by the worker."""

    workerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. An epoch
    is opaque, and compared for equality only. Epochs are random instead of counted, because a Redis
    that loses its last changes would give the same number twice.
    """

    claimId: str
    """Id of the claim, for idempotency."""

    max: int
    """Maximum number of requests."""

    waitMs: NotRequired[int]
    """Wait at most this long for a request, milliseconds."""

    job: NotRequired[str]
    """Claims only requests of this job, for a worker that cannot run other jobs. Default: any job."""

    workerKind: NotRequired[str]
    """Kind of the worker. A worker with a kind gets only requests of jobs with the same `workerKind` of
    `round.open`. Default: a built-in worker, which gets requests of jobs without a kind.
    """


class ClearSessionsReply(TypedDict):
    """Reply of `lb.clear-sessions`."""

    cleared: int
    """Sessions that are forgotten now or with their last lease."""


class ClearSessionsRequest(TypedDict):
    """`lb.clear-sessions`: forgets all sessions; a session with leases is forgotten with its last lease."""


class CloseRoundReply(TypedDict):
    """Reply of `round.close`."""

    stamp: str
    """Position of Redis at a reply. Send the latest stamp with the next call that takes a stamp."""

    roundId: str
    """Id of a round of a job, chosen by its trainer."""

    stepsTrained: int
    """Steps trained, with this step."""

    trainedGroups: int
    """Groups of this round, without excluded groups."""

    trainedRequests: int
    """Trained samples of this round."""


class CloseRoundRequest(TypedDict):
    """`round.close`: marks the groups of the round as trained."""

    job: str
    """Id of a job, chosen by its trainer."""

    stamp: NotRequired[str]
    """Stamp of the last reply."""

    trainerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. An epoch
    is opaque, and compared for equality only. Epochs are random instead of counted, because a Redis
    that loses its last changes would give the same number twice.
    """

    roundId: str
    """Id of a round of a job, chosen by its trainer."""

    cursor: str
    """Cursor of the last page of `round.results`, which proves the groups that were read. ROUND_MISMATCH
    if the round has other groups.
    """

    groups: NotRequired[list[ReadGroup]]
    """The groups that were read, so that the details of a ROUND_MISMATCH name missing, extra and different
    groups.
    """

    rewards: NotRequired[list[GroupRewards]]
    """Rewards that were not reported before, as in `round.reward`. Rewards count even if the round cannot
    be closed yet.
    """

    remainingGroups: NotRequired[int]
    """`remainingGroups` of `round.reward`, for `rewards`."""


class CommitWeightsRequest(TypedDict):
    """`weights.commit`: the engines have the new weights. A server with another version is `quarantined`
    until it reports the new version; replies of heartbeats have `requiredWeightVersion`.
    """

    syncId: str
    """The change of weights."""

    trainerEpoch: NotRequired[str]
    """Epoch of the trainer of the job; absent: the epoch of `weights.begin`."""

    stamp: NotRequired[str]
    """Stamp of the last reply."""


class CompleteItem(TypedDict):
    """One sample of `request.complete-many`."""

    requestId: str
    """Id of a request: `<job>/<groupId>/<sampleIndex>`, with `~0` for `~` and `~1` for `/` in job and
    group; unique in the pool.
    """

    attempt: str
    """Fencing number of one attempt of a request: `<number>-<random>`. The number counts the attempts, for
    display. Services compare the whole text. A request that was never claimed has the attempt `0`.
    """

    finishReason: Literal["stop", "length"]
    """Why the response ended: `stop` (the model ended it) or `length` (the budget was used up)."""

    engineFinishReason: NotRequired[str]
    """Finish reason in the words of the engine, e.g. `tool_calls`; absent if the engine named none."""

    segment: NotRequired[Segment]
    """The last segment; absent if this attempt had no budget left for a token."""

    run: NotRequired[AttemptRun]
    """Server and times of the attempt, for the timeline of the round."""


class CompleteManyReply(TypedDict):
    """Reply of `request.complete-many`."""

    results: list[Union[CompleteReply, RefusedComplete]]
    """Results in the order of the request."""


class CompleteManyRequest(TypedDict):
    """`request.complete-many`: `request.complete` for several attempts of a worker. Each has a separate
    result.
    """

    workerId: str
    """Id of a worker, which holds leases and requests, chosen by the worker."""

    workerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. An epoch
    is opaque, and compared for equality only. Epochs are random instead of counted, because a Redis
    that loses its last changes would give the same number twice.
    """

    completes: list[CompleteItem]
    """The finished samples, each of a different attempt."""


class CompleteReply(TypedDict):
    """State of the sample."""

    state: Literal["finished", "unfinished", "dropped"]
    """State of the sample. `unfinished`: the group was cut meanwhile and keeps the sample. `dropped`: the
    group no longer needs the sample.
    """

    groupAccepted: bool
    """True if the group has all its samples and a place in the round."""

    roundCompleted: bool
    """True if the round has all the groups that it needs."""


class CompleteRequest(TypedDict):
    """`request.complete`: reports a finished sample. Store the payload of the sample before this call."""

    requestId: str
    """Id of a request: `<job>/<groupId>/<sampleIndex>`, with `~0` for `~` and `~1` for `/` in job and
    group; unique in the pool.
    """

    attempt: str
    """Fencing number of one attempt of a request: `<number>-<random>`. The number counts the attempts, for
    display. Services compare the whole text. A request that was never claimed has the attempt `0`.
    """

    finishReason: Literal["stop", "length"]
    """Why the response ended: `stop` (the model ended it) or `length` (the budget was used up)."""

    engineFinishReason: NotRequired[str]
    """Finish reason in the words of the engine, e.g. `tool_calls`; absent if the engine named none."""

    segment: NotRequired[Segment]
    """The last segment; absent if this attempt had no budget left for a token."""

    run: NotRequired[AttemptRun]
    """Server and times of the attempt, for the timeline of the round."""

    workerId: str
    """Id of a worker, which holds leases and requests, chosen by the worker."""

    workerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. An epoch
    is opaque, and compared for equality only. Epochs are random instead of counted, because a Redis
    that loses its last changes would give the same number twice.
    """


class ConfigureJobReplyQuota(TypedDict):
    """Quota in force."""

    weight: int
    """Weight of the job: claims are shared among the jobs with pending requests in proportion to their
    weights.
    """

    maxInFlight: NotRequired[int]
    """Maximum requests of the job that workers have at the same time; absent = no limit."""


class ConfigureJobReply(TypedDict):
    """Reply of `job.configure`."""

    job: str
    """Id of a job, chosen by its trainer."""

    version: int
    """Version of the quota, increased by 1 with each change; 0: the defaults."""

    quota: ConfigureJobReplyQuota
    """Quota in force."""

    inFlight: int
    """Requests that workers have now."""


class ConfigureJobRequest(TypedDict):
    """`job.configure`: replaces the quota of a job, also before the first round of the job. Without
    `quota`, the present quota is returned. A repeat changes nothing. Errors: VERSION_MISMATCH.
    """

    job: str
    """Id of a job, chosen by its trainer."""

    quota: NotRequired[JobQuota]
    """The new quota, which replaces the whole old quota; absent: no change."""

    ifVersion: NotRequired[int]
    """Required version of the quota. Otherwise VERSION_MISMATCH, unless the quota is already as requested."""


class ConfigurePoolRequest(TypedDict):
    """`pool.configure`: changes the given settings; absent settings stay. If one setting is wrong, none is
    changed. A repeat changes nothing.
    """

    policy: NotRequired[RoutingPolicy]
    """Default `least-inflight`."""

    affinityBreakMargin: NotRequired[Union[int, Literal["never"]]]
    """A session leaves its server if that server has more leases than the best server of the policy and
    this margin together: 0 to 1,000,000. `never` (the default): a session stays under any load.
    """

    affinityBreakMaxContextTokens: NotRequired[int]
    """An acquire with more `contextTokens` stays on the server of its session, because another prefill
    would cost more. Unset = no limit.
    """

    groupPlacement: NotRequired[GroupPlacement]
    """Default `group-spread`."""

    groupAffinityCap: NotRequired[int]
    """Maximum leases of one group on one server with affinity; further leases go to other servers. Default
    8.
    """

    groupSpreadBelowTokens: NotRequired[int]
    """`auto` spreads samples of a group with fewer `contextTokens` than this. Default 2,048."""

    groupSpreadAboveKvUse: NotRequired[float]
    """`auto` spreads away from a server that reported a KV use above this, 0 to 1. Default 0.7."""

    sessionIdleMs: NotRequired[int]
    """Idle time after which a session is forgotten, milliseconds. Default: SESSION_IDLE_MS of the
    load-balancer.
    """

    maxSessions: NotRequired[int]
    """Maximum sessions. When there are more, the session that was idle longest is forgotten. Default
    200,000.
    """

    sessionAdmission: NotRequired[SessionAdmission]
    """`kv`: sessions are admitted at turn boundaries by the KV memory that their contexts need; also sets
    the policy `least-kv` if the pool has no policy. Default `off`.
    """

    sessionKvTokens: NotRequired[int]
    """KV memory of a server whose engine reports none, tokens. Unset = such a server takes all sessions."""

    pausedSessionWaitMs: NotRequired[int]
    """A paused session whose turn has waited for this time goes on whatever the KV memory. Default
    600,000.
    """

    decisionSampleEvery: NotRequired[int]
    """Every n-th decision is stored with its full snapshot. Default 1,000."""

    poolMaxInflight: NotRequired[int]
    """Maximum leases of the whole pool. Unset = the sum over all servers."""

    requiredWeightVersion: NotRequired[int]
    """A server with another weight version is `quarantined` until it reports this version. Unset = any
    version.
    """

    slowStartMs: NotRequired[int]
    """Time in which a new or restarted server reaches its capacity, milliseconds. Default 0 = at once."""

    slowStartFraction: NotRequired[float]
    """Share of the capacity with which a server begins in slow start, at least one lease. Default 0.1."""

    breakerFailures: NotRequired[int]
    """Consecutive failed calls (outcome `failed` of `lb.release`) that make a server suspect although it
    answers probes; never more than half of the servers. 0 = off. Default 5.
    """

    breakerOpenMs: NotRequired[int]
    """Time that a server is then suspect, milliseconds; after that the server gets one call first. Default
    10,000.
    """

    adaptiveConcurrency: NotRequired[Literal[0, 1]]
    """1 = the capacity of a server follows the load that its engine reports. Default 0 = off."""

    adaptIntervalMs: NotRequired[int]
    """Pause between two changes of a server's capacity, milliseconds. Default 2,000."""

    streamInterval: NotRequired[int]
    """Tokens of one event that workers and gateways ask engines for, for responses that no client reads
    token by token. Default: STREAM_INTERVAL of the worker or gateway.
    """

    reset: NotRequired[list[PoolSettingName]]
    """Names of settings to reset to their defaults before the given settings are set."""

    ifVersion: NotRequired[int]
    """Required version of the settings. Otherwise VERSION_MISMATCH, unless the settings are already as
    requested.
    """


class ConfigureRebalanceRequest(TypedDict):
    """`rebalance.configure`: changes the given settings of the rebalancer; absent settings stay. An empty
    body returns the settings. A repeat changes nothing. Errors: VERSION_MISMATCH.
    """

    mode: NotRequired[Literal["off", "dry-run", "on"]]
    """`off`: no plans. `on`: make plans and move requests. `dry-run`: only make, store and count plans."""

    policy: NotRequired[RebalancePolicy]
    """Policy that plans moves."""

    tiers: NotRequired[list[int]]
    """Batch sizes for which the engines have captured graphs; strictly descending."""

    stepBaseSeconds: NotRequired[float]
    """A decode step takes `stepBaseSeconds` + `stepPerSequenceSeconds` x tier."""

    stepPerSequenceSeconds: NotRequired[float]
    """Time of a decode step for each sequence of its tier, seconds."""

    prefillTokensPerSecond: NotRequired[float]
    """Prefill speed of an engine, tokens per second."""

    kvBytesPerToken: NotRequired[float]
    """Size of the KV cache of one token in a KV store, bytes; 0: every move computes the cache again.
    Servers with the same label `kv-store` share a store.
    """

    kvBytesPerSecond: NotRequired[float]
    """Bytes that an engine reads from its KV store per second; 0: every move computes the cache again."""

    kvSetupSeconds: NotRequired[float]
    """Time before the first byte of a cache is read from the KV store, seconds."""

    minGainRatio: NotRequired[float]
    """Minimum ratio of the gain of a plan to its longest stall."""

    pauseSeconds: NotRequired[float]
    """Fixed time that every plan costs, seconds."""

    maxMovesPerRequest: NotRequired[int]
    """Maximum moves of one request."""

    minMoveIntervalMs: NotRequired[int]
    """Minimum time between two moves of one request, milliseconds."""

    minRemainingTokens: NotRequired[int]
    """A request with fewer expected remaining tokens stays."""

    movesDrained: NotRequired[bool]
    """Move requests away from draining servers."""

    maxRunning: NotRequired[int]
    """For `tier-min`: maximum requests that an engine runs at once, `max_num_running_reqs` of the
    published rule; 0: the largest tier.
    """

    minPlanIntervalMs: NotRequired[int]
    """Minimum time between two plans, milliseconds."""

    planIntervalMs: NotRequired[int]
    """Time after the last plan until a plan is made without a trigger, milliseconds."""

    planIntervalSteps: NotRequired[int]
    """Decode steps between two plans, `check_interval` of the published rule. Only a drain triggers a plan
    before. 0: changes and `planIntervalMs` trigger plans.
    """

    ifVersion: NotRequired[int]
    """Required version of the settings. Otherwise VERSION_MISMATCH, unless the settings are already as
    requested.
    """


class CordonServerRequest(TypedDict):
    """`server.cordon`: stops new leases; existing leases continue. A cordon stays in force after a restart
    of the engine.
    """

    serverId: str
    """Id of a server (one engine with its address), chosen by the caller that registers it."""


class Decision(TypedDict):
    """How a server was chosen."""

    policy: RoutingPolicy
    """Routing policy of the pool."""

    branch: DecisionBranch
    """The rule that chose the server."""

    inflight: int
    """Leases of the chosen server, with the new lease."""

    via: NotRequired[DecisionBranch]
    """Branch that chose the server, for the branches `waited` and `bound-unavailable`."""

    policyVersion: NotRequired[int]
    """Version of the pool's settings."""

    key: NotRequired[float]
    """Load key of the chosen server before the choice, in the unit of the policy."""

    best: NotRequired[list[RankedServer]]
    """The first four servers with room in the order of the policy. A choice by load omits servers that do
    not meet the constraints. A draw or hash has one server.
    """

    eligible: NotRequired[int]
    """Number of servers with room, regardless of constraints."""

    snapshot: NotRequired[DecisionSnapshot]
    """All input of the choice, for an acquire with `explain` or a sampled choice."""


class DecisionRecord(TypedDict):
    """One recorded choice."""

    seq: int
    """Sequence of the choice: the sequence of the lease; a transfer has a separate sequence."""

    acquireId: str
    """The acquire of the choice."""

    serverId: str
    """Id of a server (one engine with its address), chosen by the caller that registers it."""

    decidedAtMs: int
    """When the choice was made, milliseconds since 1970."""

    decision: Decision
    """The choice and its reasons."""


class DecisionSnapshotRequest(TypedDict):
    """The fields of the acquire that affect the choice."""

    acquireId: str
    """Id of the acquire, for idempotency: a repeat gets the same lease while it lives and for 120 s
    afterwards.
    """

    requestId: str
    """Request of the lease, for correlation only. A trajectory may use one requestId for all turns."""

    attempt: NotRequired[str]
    """Attempt of the claimed request, as `lb.leases` shows it."""

    sessionId: NotRequired[str]
    """Session: turns of one session stay on one server."""

    parentSessionId: NotRequired[str]
    """Session that has started this session as a subagent; only with `sessionAdmission`. The parent of the
    first acquire stays: SESSION_CONFLICT for another one, and for a circle of parents.
    """

    job: NotRequired[str]
    """Job of the session, which ends when the job is deleted; only with `sessionAdmission`. Default: the
    job of a `groupId` that is composed of job and group.
    """

    groupId: NotRequired[str]
    """Group of the request, for spread or affinity."""

    contextTokens: NotRequired[int]
    """Context of the request, tokens."""

    weightVersion: NotRequired[int]
    """Only a server with exactly this weight version."""

    minWeightVersion: NotRequired[int]
    """Only a server with at least this weight version."""

    maxWeightLag: NotRequired[int]
    """Only a server at most this many versions behind the newest version among servers of the pool that
    take leases.
    """

    excludeServers: NotRequired[list[str]]
    """Servers that may not get the lease, for example a server that has just failed."""

    avoidServers: NotRequired[list[str]]
    """Servers on which the request has just failed: they get the lease only while no other server can take
    it.
    """

    labels: NotRequired[dict[str, str]]
    """Only a server that has all these labels."""

    needs: NotRequired[list[EngineFeature]]
    """Required features. A server is left out if its engine is known to lack one."""

    model: NotRequired[str]
    """Model or adapter. A server is left out if its engine is known not to list the model. While all
    engines of the pool list the same models, the model is no constraint. MODEL_NOT_FOUND when no server
    of the pool has the model.
    """

    dpRank: NotRequired[int]
    """Data-parallel rank of the session. The rank is stored with the session and returned with later
    leases.
    """

    boundServerId: NotRequired[str]
    """Server that gets the lease regardless of session and policy. If this server cannot take the lease,
    the usual choice follows, with the branch `bound-unavailable`. The session is bound to the chosen
    server.
    """

    boundServerEpoch: NotRequired[str]
    """Required epoch of `boundServerId`."""


class DecisionSnapshot(TypedDict):
    """All input of a choice, for `replayDecision`."""

    settings: PoolSettings
    """Settings of the pool."""

    request: DecisionSnapshotRequest
    """The fields of the acquire that affect the choice."""

    boundTo: NotRequired[str]
    """Server of the session, if that server is still usable."""

    namedServer: NotRequired[str]
    """Server of `boundServerId`, if that server could take the lease."""

    newestWeightVersion: int
    """Newest weight version of the servers that take leases."""

    servers: list[SnapshotServer]
    """The first 128 servers in the order of the policy, the bound one and the chosen one."""

    truncated: NotRequired[bool]
    """The list `servers` is not complete."""


class DecisionsReply(TypedDict):
    """Reply of `lb.decisions`."""

    cursor: NotRequired[str]
    """Cursor of the next page; absent on the last page."""

    decisions: list[DecisionRecord]
    """The choices, latest first."""


class DecisionsRequest(TypedDict):
    """`lb.decisions`: one page of recent choices, latest first."""

    cursor: NotRequired[str]
    """Cursor of the previous page."""

    limit: NotRequired[int]
    """Maximum entries of the page, at most 128 (default), or 16 with snapshots."""

    full: NotRequired[bool]
    """Only decisions with a snapshot."""


class DeleteJobReply(TypedDict):
    """Reply of `job.delete`."""

    job: str
    """Id of a job, chosen by its trainer."""

    state: Literal["deleting", "deleted"]
    """`deleting`: not finished; send the same body again."""


class DeleteJobRequest(TypedDict):
    """`job.delete`: deletes the job with its long-tail queue, snapshots, ledger, quota and payloads, and
    ends its sessions. While the reply has the state `deleting`, send the same body again. An unknown
    job is `deleted`.
    """

    job: str
    """Id of a job, chosen by its trainer."""

    force: NotRequired[bool]
    """Delete the job also while a round is open. The round is cancelled, and the trainer is fenced."""


class DeletePoolReply(TypedDict):
    """Reply of `pool.delete`."""

    pool: str
    """Id of a pool: a NATS token, and the hash tag of Redis keys."""

    jobs: int
    """Number of jobs that were deleted with the pool."""


class DeletePoolRequest(TypedDict):
    """`pool.delete`: deletes the pool of the subject with all its jobs, servers, settings and prompt
    memory.
    """

    force: NotRequired[bool]
    """Delete the pool although servers, workers or open rounds are left. All users are fenced and must
    register again.
    """


class DeregisterWorkerReply(TypedDict):
    """Reply of `worker.deregister`."""

    deregistered: bool
    """False if the epoch had ended before."""


class DeregisterWorkerRequest(TypedDict):
    """`worker.deregister`: ends the epoch at once. The leases and attempts of the epoch are returned."""

    workerId: str
    """Id of a worker, which holds leases and requests, chosen by the worker."""

    workerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. An epoch
    is opaque, and compared for equality only. Epochs are random instead of counted, because a Redis
    that loses its last changes would give the same number twice.
    """


class DrainServerRequest(TypedDict):
    """`server.drain`: stops new leases, and removes the server with its last lease. At the deadline the
    server is removed with all remaining leases, and holders learn this from `worker.sync`. A repeat can
    only make the deadline earlier.
    """

    serverId: str
    """Id of a server (one engine with its address), chosen by the caller that registers it."""

    deadlineMs: int
    """Time until the deadline, milliseconds; at most 7 days."""


class DripWhy(TypedDict):
    """How an adaptive `dripGroups` was computed."""

    bulkPace: float
    """New groups per second, moving average."""

    tailPace: float
    """Groups of the queue per second, moving average."""

    wanted: float
    """Value of the model, before damping."""

    heldSteps: int
    """Number of steps for which the value stays."""


class DropLongtailReply(TypedDict):
    """Reply of `longtail.drop`."""

    cursor: NotRequired[int]
    """Cursor of the next page, to be sent with the same body; absent on the last page."""

    stamp: str
    """Position of Redis at a reply. Send the latest stamp with the next call that takes a stamp."""

    dropped: list[str]
    """Groups that were dropped."""

    notQueued: list[str]
    """Groups that are not in the queue: trained, dropped before, in a round, or never submitted."""

    requests: int
    """Requests of the dropped groups."""

    tokens: int
    """Tokens of the dropped groups."""


class DropLongtailRequest(TypedDict):
    """`longtail.drop`: drops groups of the queue, for example groups of prompts without variance. The
    payloads of the groups are deleted, and the groups count in `droppedGroups`. Needs exactly one of
    `groupIds` and `all`.
    """

    job: str
    """Id of a job, chosen by its trainer."""

    stamp: NotRequired[str]
    """Stamp of the last reply."""

    trainerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. An epoch
    is opaque, and compared for equality only. Epochs are random instead of counted, because a Redis
    that loses its last changes would give the same number twice.
    """

    groupIds: NotRequired[list[str]]
    """The groups to drop; exactly one of `groupIds` and `all`."""

    all: NotRequired[Literal[True]]
    """All groups of the queue."""

    reason: str
    """Reason, for the events and the dropped groups."""

    cursor: NotRequired[int]
    """Cursor of the previous page, with `all`. Groups that entered the queue after the first page stay in
    the queue.
    """


class EngineCapabilities(TypedDict):
    """Capabilities of an engine, from its registration or a probe. An absent capability is unknown."""

    tokenIdsIn: NotRequired[bool]
    """The engine accepts token ids, so resume is exact."""

    tokenIdsOut: NotRequired[bool]
    """The engine returns token ids."""

    logprobs: NotRequired[bool]
    """The engine returns log probabilities."""

    abortById: NotRequired[bool]
    """The engine has a route that stops a request by its id."""

    abortOnDisconnect: NotRequired[bool]
    """The engine stops a request when the caller closes the connection."""

    loadReport: NotRequired[bool]
    """The engine reports its load."""

    prefixCacheReset: NotRequired[bool]
    """The engine has a route that resets its prefix cache. New weights require a reset."""

    tokenize: NotRequired[bool]
    """The engine returns the token ids of a text, so a text prompt can be resumed by token ids."""

    cacheSalt: NotRequired[bool]
    """The engine keeps prefix cache entries apart by the salt of each request (`cacheSalt` of a lease)."""

    sessionClose: NotRequired[bool]
    """The engine knows the session of each request, and gives up the KV cache of a session that is closed
    (SGLang with `--enable-session-radix-cache`): load-balancer closes sessions there when they end.
    """

    streamInterval: NotRequired[bool]
    """The engine takes `stream_interval` of requests, and sends one event for so many tokens. Engines
    without it send an event for each token unless they are started with `--stream-interval`.
    """

    pauseModes: NotRequired[list[PauseMode]]
    """Supported pause modes; empty = none."""

    dataParallelRanks: NotRequired[int]
    """Number of data-parallel ranks behind the address; 1 = no data parallelism."""

    maxModelTokens: NotRequired[int]
    """Maximum prompt + response, tokens; absent if the engine does not report it."""

    version: NotRequired[str]
    """Version that the engine reports."""


class ErrorReply(TypedDict):
    """An error reply; a reply without `error` is a result."""

    error: WireError
    """The error."""


class ExecuteRebalanceRequest(TypedDict):
    """`rebalance.execute`: executes a stored plan, or the given moves under a new planId. A repeat sends
    nothing twice.
    """

    planId: str
    """Id of the plan."""

    limit: NotRequired[int]
    """Maximum moves in the page."""

    moves: NotRequired[list[WantedMove]]
    """Moves to execute instead of a stored plan; each request and each lease at most once."""


class FailReply(TypedDict):
    """Reply of `request.fail`."""

    state: Literal["pending", "unfinished", "failed", "dropped"]
    """State of the request now."""


class FailRequest(TypedDict):
    """`request.fail`: ends the attempt without a finished sample. The request becomes `unfinished` after a
    cut, otherwise `pending`, or `failed` beyond a limit. The reasons `engine-error`, `engine-rejected`
    and, if not retryable, `payload` count as failures (limit: `maxFailures` of the policy). Each start
    of a server (`run.serverId`) counts once, a new token resets the count, and nothing counts while
    most servers fail other prompts too. A second retryable `engine-rejected` of one start of a server
    fails the request, unless another server has sent none. All other reasons without a command count as
    returns (limit: `maxReturns`). After `payload-full`, no request of the job is claimed until the
    payload quota has room. After `timeout`, the sample ends for good, and the group ends according to
    `abortScope` of the round. `no-server` includes an engine that could not serve now (429, 503, no
    connection).
    """

    workerId: str
    """Id of a worker, which holds leases and requests, chosen by the worker."""

    workerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. An epoch
    is opaque, and compared for equality only. Epochs are random instead of counted, because a Redis
    that loses its last changes would give the same number twice.
    """

    requestId: str
    """Id of a request: `<job>/<groupId>/<sampleIndex>`, with `~0` for `~` and `~1` for `/` in job and
    group; unique in the pool.
    """

    attempt: str
    """Fencing number of one attempt of a request: `<number>-<random>`. The number counts the attempts, for
    display. Services compare the whole text. A request that was never claimed has the attempt `0`.
    """

    generatedMs: NotRequired[int]
    """Generation time of the attempt, milliseconds; for a sample with `timeoutMs`."""

    reason: FailReason
    """Why the attempt ends."""

    retryable: bool
    """False if a retry cannot help, for example because the engine refused the request."""

    message: NotRequired[str]
    """Text about the failure, for people."""

    segment: NotRequired[Segment]
    """Tokens generated so far, which are kept."""

    missingRef: NotRequired[str]
    """With the reason `payload`: reference of a missing segment. Its tokens are generated again."""

    lostTokens: NotRequired[int]
    """Tokens of this attempt, if not all of them are in `segment`: they could not be stored, or the engine
    had generated tokens that it did not send (an estimate). The tokens beyond `segment` and the last
    partial save count as waste.
    """

    run: NotRequired[AttemptRun]
    """Server and times of the attempt, for the timeline of the round; absent if the attempt had no server."""


class FenceServerReply(TypedDict):
    """Reply of `server.fence`."""

    serverId: str
    """Id of a server (one engine with its address), chosen by the caller that registers it."""

    epoch: str
    """Epoch of the server."""

    state: ServerState
    """State of the server."""

    changed: bool
    """False if the server has another epoch."""


class FenceServerRequest(TypedDict):
    """`server.fence`: expires the epoch of a server as if the engine had failed, for an engine that does
    not stop aborted requests. The leases and sessions of the server expire, and late releases change
    nothing. The server is `failed` until it is registered with another instanceId.
    """

    serverId: str
    """Id of a server (one engine with its address), chosen by the caller that registers it."""

    epoch: str
    """The epoch to expire. Another current epoch stays."""

    reason: NotRequired[str]
    """Text for the log and the event."""


class FindPoolReply(TypedDict):
    """Reply of `pool.find`."""

    known: bool
    """True if the replying load-balancer serves the pool by name, or the pool has state in Redis."""

    pools: list[str]
    """Pools that the load-balancer serves by name, and pools with state in Redis: the first 128, sorted."""


class FindPoolRequest(TypedDict):
    """`pool.find`: tells whether a pool exists. Any load-balancer answers, also one that does not serve
    the pool of the caller.
    """

    name: str
    """Name of the pool."""


class FinishSessionReply(TypedDict):
    """Reply of `lb.finish-session`."""

    finished: bool
    """False when there was no such session."""


class FinishSessionRequest(TypedDict):
    """`lb.finish-session`: forgets the session of a finished trajectory, and releases no leases.
    Idempotent.
    """

    sessionId: str
    """Id of the session to finish."""


class GetLeaseRequest(TypedDict):
    """`lb.lease`: one live lease. Errors: LEASE_NOT_FOUND."""

    leaseId: str
    """Id of a lease, `<sequence>.<acquireId>`. The sequence distinguishes leases with the same acquireId."""


class GetPayloadReply(TypedDict):
    """Reply of `payload.get`."""

    bytes: int
    """Size of the whole payload, bytes."""

    chunkCount: int
    """Chunks of the whole payload."""

    data: str
    """The chunk in base64."""

    chunkIndex: int
    """Index of this chunk, from 0."""


class GetPayloadRequest(TypedDict):
    """`payload.get`: one chunk."""

    ref: str
    """Reference of the payload."""

    chunkIndex: NotRequired[int]
    """Index of the chunk, from 0."""


class GetPayloadsReply(TypedDict):
    """Reply of `payload.get-many`."""

    payloads: list[Union[GetPayloadReply, UnreadPayload]]
    """Results in the order of the request."""


class GetPayloadsRequest(TypedDict):
    """`payload.get-many`: the first chunks of several payloads. Each payload has a separate result."""

    refs: list[str]
    """References of the payloads."""


class GetReadinessRequest(TypedDict):
    """`service.readiness`: reads the readiness checks of all replicas that serve the pool. Each replica
    replies.
    """


class GetRequestRequest(TypedDict):
    """`request.get`: one request in any state, with its segments. Errors: REQUEST_NOT_FOUND, also after
    the requests of a closed round were deleted.
    """

    requestId: str
    """Id of a request: `<job>/<groupId>/<sampleIndex>`, with `~0` for `~` and `~1` for `/` in job and
    group; unique in the pool.
    """


class GetServerRequest(TypedDict):
    """`server.get`: one server. Errors: SERVER_NOT_FOUND."""

    serverId: str
    """Id of a server (one engine with its address), chosen by the caller that registers it."""


class GrantedItem(TypedDict):
    """A granted acquire."""

    acquireId: str
    """Id of the acquire, from the request."""

    leaseId: str
    """Id of a lease, `<sequence>.<acquireId>`. The sequence distinguishes leases with the same acquireId."""

    serverId: str
    """Id of a server (one engine with its address), chosen by the caller that registers it."""

    dpRank: NotRequired[int]
    """Data-parallel rank of the session on this server."""

    decision: NotRequired[Decision]
    """How the server was chosen; only with `explain`."""


class GrantedServer(TypedDict):
    """A server on which leases were granted."""

    epoch: str
    """Epoch of the server."""

    endpoint: str
    """Base URL of the engine."""

    dialect: EngineDialect
    """API of the engine."""

    model: NotRequired[str]
    """Model of the engine: the model of its registration, or else the first model that the engine lists."""

    weightVersion: int
    """Weight version of the server."""

    cacheSalt: NotRequired[str]
    """Unique name of the weights of the server. A caller of the engine adds this name to `cache_salt`
    (vLLM) or `extra_key` (SGLang), so that the engine uses no prefix cache entry of other weights.
    Absent if the engine has no salts.
    """

    streamInterval: NotRequired[int]
    """Tokens of one event that the engine is asked for: `streamInterval` of the pool, if it is set."""


class GroupDroppedEvent(TypedDict):
    """A group was dropped."""

    type: Literal["group.dropped"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool of the event."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    job: str
    """Id of the job."""

    roundId: str
    """Id of the round."""

    groupId: str
    """Id of the group."""

    abortId: NotRequired[str]
    """The abort that dropped the group, if an abort did so."""

    reason: NotRequired[str]
    """Reason given by the caller, if any."""


class GroupFailedEvent(TypedDict):
    """A group failed: one of its requests failed for good."""

    type: Literal["group.failed"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool of the event."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    job: str
    """Id of the job."""

    roundId: str
    """Id of the round."""

    groupId: str
    """Id of the group."""

    reason: NotRequired[str]
    """Why the sample failed, as in `request.fail`; `lost`: Redis has lost a part of the sample."""


class GroupResult(TypedDict):
    """One accepted group."""

    groupId: str
    """Id of a group, unique in its job, chosen by the trainer."""

    cuts: int
    """Number of cuts of the group."""

    firstStep: int
    """Step in which the group was first submitted."""

    domain: NotRequired[str]
    """Domain of the group, if any."""

    promptRef: str
    """Reference of the prompt."""

    excluded: NotRequired[Literal[True]]
    """The group is not trained, because its rewards are equal."""

    samples: list[SampleResult]
    """Samples of the group."""

    more: NotRequired[bool]
    """The page ends within this group; its other samples are in the next page."""

    digest: NotRequired[str]
    """Digest of the samples and their segments; absent with `more`. If a later read has the same digest,
    the payloads are still the same.
    """


class GroupRewards(TypedDict):
    """Rewards of one accepted group."""

    groupId: str
    """Id of a group, unique in its job, chosen by the trainer."""

    rewards: list[float]
    """One finite number for each sample in the results of the group, in any order."""


class GroupStatus(TypedDict):
    """One group of a round."""

    groupId: str
    """Id of a group, unique in its job, chosen by the trainer."""

    cuts: int
    """Number of cuts of the group."""

    firstStep: int
    """Step in which the group was first submitted."""

    finishedSamples: int
    """Samples that are finished."""

    samples: int
    """Samples that the group needs."""

    tokens: int
    """Tokens of all samples of the group."""

    state: str
    """`live`, `accepted`, `leaving` (cut, not in the queue yet), or how the group ended."""

    liveSamples: int
    """Samples that are pending, claimed, running or cutting."""

    isHeld: NotRequired[Literal[True]]
    """The group is finished and has no place in the round."""

    reason: NotRequired[str]
    """Why the group ended, with the set `lost`: the reason of the failed attempt (e.g. `engine-rejected`),
    the reason of the abort or drop, `timeout`, or `lost` (Redis has lost a part of the group).
    """

    message: NotRequired[str]
    """Message of the failed attempt, at most 300 bytes; with the set `lost`."""

    requestId: NotRequired[str]
    """The sample that ended the group, if a single sample did so; with the set `lost`."""

    promptRef: NotRequired[str]
    """Reference of the prompt; with the set `lost`."""

    atMs: NotRequired[int]
    """When the group ended, milliseconds since 1970; with the set `lost`."""


class GroupSubmission(TypedDict):
    """One prompt with its samples."""

    groupId: str
    """Id of the group, unique in its job."""

    samples: int
    """Number of samples to train."""

    minSamples: NotRequired[int]
    """Minimum number of samples to train if others were aborted, timed out or failed for good. The group
    waits for all samples that can still finish, up to `samples`. Default: `samples`.
    """

    prompt: NotRequired[Prompt]
    """The prompt inline, at most 32 kB; or `promptRef`."""

    promptRef: NotRequired[str]
    """Reference of the prompt, stored by `payload.put`; or `prompt`."""

    maxTokens: int
    """Token budget of each sample. The room in the context of the engine limits the budget. If all engines
    of the pool report their context, a prompt of token ids without room is refused
    (`CONTEXT_TOO_LONG`). A limited response ends with `length`.
    """

    timeoutMs: NotRequired[int]
    """Maximum generation time of a sample over all attempts, milliseconds; default: no limit. Waits for a
    worker or a server, and the time of thrown away tokens, do not count. A sample that takes longer
    ends like an aborted sample, with the `abortScope` of the round.
    """

    sampling: NotRequired[SamplingParameters]
    """Sampling parameters of all samples, at most 4 kB of JSON."""

    domain: NotRequired[str]
    """Domain of the prompt, for `domainQuotas`, over-provision and long-tail statistics."""

    promptId: NotRequired[str]
    """Id of the prompt in the prompt memory. Use one id in all passes over the data and all jobs. Default:
    the contents or `promptRef`.
    """


class HeldItem(TypedDict):
    """A lease or an attempt of a worker."""

    id: str
    """Id of the lease or request."""

    attempt: NotRequired[str]
    """The attempt; absent for a lease."""

    sinceMs: int
    """Time of the grant or claim, milliseconds since 1970."""


class JobLedgerReply(TypedDict):
    """Reply of `job.ledger`."""

    summary: LedgerSummary
    """Cost of the policy."""

    lengthBiasSoFar: NotRequired[float]
    """`lengthBias` of all steps up to `roundId`; absent without `roundId`. The value of an unbiased policy
    approaches 1. The length bias of a single round does not, because some of its groups were started in
    earlier rounds.
    """

    alarms: list[LedgerAlarm]
    """Bounds of the last policy of the job (`alarms`) that are nearly reached or exceeded."""


class JobLedgerRequest(TypedDict):
    """`job.ledger`: the cost of the tail policy over all steps of a job or in one of its last rounds."""

    job: str
    """Id of a job, chosen by its trainer."""

    roundId: NotRequired[str]
    """The round, among the last 16; absent: all steps of the job."""


class JobQuota(TypedDict):
    """Quota of a job in a pool."""

    weight: NotRequired[int]
    """Weight of the job: claims are shared among the jobs with pending requests in proportion to their
    weights.
    """

    maxInFlight: NotRequired[int]
    """Maximum requests of the job that workers have at the same time; 0 stops its claims; absent = no
    limit.
    """


class JobReconciledEvent(TypedDict):
    """The trainer of a job has named the last groups of a step that it has trained (`job.reconcile`)."""

    type: Literal["job.reconciled"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool of the event."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    job: str
    """Id of the job."""

    step: int
    """The step, from 1."""

    trainedGroups: int
    """Groups of the last page that were not counted as trained before."""


class JobRestoredEvent(TypedDict):
    """A job was restored from a snapshot."""

    type: Literal["job.restored"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool of the event."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    job: str
    """Id of the job."""

    tag: str
    """Tag of the snapshot."""

    trainerEpoch: str
    """Epoch of the trainer from now on."""


class JobSnapshotStatus(TypedDict):
    """A snapshot that can be restored."""

    tag: str
    """Name of the snapshot."""

    step: int
    """Steps trained."""

    groups: int
    """Groups of the long-tail queue in the snapshot."""

    requests: int
    """Requests of the groups of the snapshot."""

    savedAtMs: int
    """Time of completion, milliseconds since 1970."""


class JobSnapshottedEvent(TypedDict):
    """A snapshot of a job is complete."""

    tag: str
    """Name of the snapshot."""

    step: int
    """Steps trained."""

    groups: int
    """Groups of the long-tail queue in the snapshot."""

    type: Literal["job.snapshotted"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool of the event."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    job: str
    """Id of the job."""


class JobStatus(TypedDict):
    """State of a job."""

    trainerEpoch: str
    """Epoch of the trainer of the job. The trainer sends the epoch with every later call."""

    stepsTrained: int
    """Steps trained (rounds closed)."""

    submittedGroups: int
    """Groups ever submitted: the trainer's position in its data."""

    stamp: str
    """Position of Redis at a reply. Send the latest stamp with the next call that takes a stamp."""

    job: str
    """Id of a job, chosen by its trainer."""

    trainedGroups: int
    """Groups trained."""

    excludedGroups: int
    """Accepted groups that were not trained, because their rewards were equal. Their requests count as
    `dropped`.
    """

    failedGroups: int
    """Groups with a request that failed for good."""

    droppedGroups: int
    """Groups that lost samples to an abort and were dropped; never trained."""

    longtail: LongtailStats
    """Long-tail queue of the job."""

    requests: RequestCounts
    """Requests of the job, by state."""

    openRoundId: NotRequired[str]
    """The round that is not closed, if any."""


class JobStatusRequest(TypedDict):
    """`job.status`: state and request counts of a job."""

    job: str
    """Id of a job, chosen by its trainer."""

    stamp: NotRequired[str]
    """Stamp of the last reply."""


class JobTakenOverEvent(TypedDict):
    """Another trainer has taken a job over."""

    type: Literal["job.taken-over"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool of the event."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    job: str
    """Id of the job."""


class KnownPrompt(TypedDict):
    """Known response lengths of a prompt, for example from an earlier run."""

    promptId: str
    """Id of the prompt in the prompt memory."""

    lengths: list[int]
    """Lengths of the responses, tokens."""

    atCap: NotRequired[bool]
    """True if all responses ended at their token budget."""


class LeaseGrant(TypedDict):
    """A granted lease: the right to run one request on a server."""

    epoch: str
    """Epoch of the server."""

    endpoint: str
    """Base URL of the engine."""

    dialect: EngineDialect
    """API of the engine."""

    model: NotRequired[str]
    """Model of the engine: the model of its registration, or else the first model that the engine lists."""

    weightVersion: int
    """Weight version of the server."""

    cacheSalt: NotRequired[str]
    """Unique name of the weights of the server. A caller of the engine adds this name to `cache_salt`
    (vLLM) or `extra_key` (SGLang), so that the engine uses no prefix cache entry of other weights.
    Absent if the engine has no salts.
    """

    streamInterval: NotRequired[int]
    """Tokens of one event that the engine is asked for: `streamInterval` of the pool, if it is set."""

    leaseId: str
    """Id of a lease, `<sequence>.<acquireId>`. The sequence distinguishes leases with the same acquireId."""

    serverId: str
    """Id of a server (one engine with its address), chosen by the caller that registers it."""

    dpRank: NotRequired[int]
    """Data-parallel rank of the session on this server."""

    decision: Decision
    """How the server was chosen."""


class LeaseHolder(TypedDict):
    """A live worker epoch with leases on the server. The worker is asked for a `worker.sync`."""

    workerId: str
    """Id of a worker, which holds leases and requests, chosen by the worker."""

    workerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. An epoch
    is opaque, and compared for equality only. Epochs are random instead of counted, because a Redis
    that loses its last changes would give the same number twice.
    """

    leases: int
    """Leases of the worker in this page."""


class LeaseStatus(TypedDict):
    """One live lease."""

    leaseId: str
    """Id of a lease, `<sequence>.<acquireId>`. The sequence distinguishes leases with the same acquireId."""

    requestId: str
    """Request that the acquire named."""

    attempt: NotRequired[str]
    """Attempt of the acquire, if any."""

    serverId: str
    """Id of a server (one engine with its address), chosen by the caller that registers it."""

    serverEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. An epoch
    is opaque, and compared for equality only. Epochs are random instead of counted, because a Redis
    that loses its last changes would give the same number twice.
    """

    workerId: str
    """Id of a worker, which holds leases and requests, chosen by the worker."""

    workerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. An epoch
    is opaque, and compared for equality only. Epochs are random instead of counted, because a Redis
    that loses its last changes would give the same number twice.
    """

    sessionId: NotRequired[str]
    """Session of the acquire, if any."""

    groupId: NotRequired[str]
    """Group of the acquire, if any."""

    ageMs: int
    """Time since the grant, milliseconds."""


class LedgerAlarm(TypedDict):
    """A bound that is nearly reached or exceeded."""

    bound: Literal["lengthBias", "truncatedShare", "offPolicyShare", "versionSpan", "wasteShare", "batchVariation", "cutsPerGroup"]
    """Name of the bound."""

    value: float
    """Current value of what the bound limits."""

    limit: float
    """Most that the value may be."""

    state: Literal["near", "over"]
    """`near`: the value is above 80 % of the bound."""


class LedgerBounds(TypedDict):
    """Bounds of the values of a ledger, each optional. Shares are 0 to 1."""

    lengthBias: NotRequired[float]
    """|trained mean length / admitted mean length - 1|."""

    truncatedShare: NotRequired[float]
    """Share of trained samples that ended at the token budget."""

    offPolicyShare: NotRequired[float]
    """Share of trained tokens from older weight versions."""

    versionSpan: NotRequired[int]
    """Weight versions between the oldest token of a sample and its training."""

    wasteShare: NotRequired[float]
    """Tokens thrown away / all generated tokens."""

    batchVariation: NotRequired[float]
    """Standard deviation / mean, over the mean lengths of the steps."""

    cutsPerGroup: NotRequired[int]
    """How often a trained group was cut."""


class LedgerSummaryWaste(TypedDict):
    """Tokens that were thrown away."""

    tokens: int
    """Number of tokens."""

    share: float
    """Share of all generated tokens."""

    byReason: dict[str, int]
    """Number of tokens, by reason."""


class LedgerSummaryTrainedByKind(TypedDict):
    """Trained samples by the kind of their round, from exact lengths: shows the effect of tail steps on
    length and truncation.
    """

    short: TrainedPart
    """Samples of rounds that are mostly new prompts."""

    long: TrainedPart
    """Samples of rounds from the long-tail queue."""


class LedgerSummaryExcluded(TypedDict):
    """Accepted groups that were not trained, because their rewards were equal. `lengthBias` and
    `acceptance` count their samples as trained, because the tail policy has accepted them.
    """

    groups: int
    """Groups."""

    samples: int
    """Samples of these groups."""


class LedgerSummaryReconciled(TypedDict):
    """Groups and samples that `job.reconcile` counted as trained because Redis had lost them. The lengths
    are unknown, so no other field counts them. All trained requests of the job are `samples` and
    `trained.samples` together.
    """

    groups: int
    """Groups."""

    samples: int
    """Samples of these groups."""


class LedgerSummary(TypedDict):
    """Summary of a ledger. Shares are 0 to 1."""

    trained: LengthSummary
    """Samples that were trained."""

    admitted: LengthSummary
    """All started samples. The lengths are a Kaplan-Meier estimate, because some samples were cut. A
    sample that is generated again counts each time, and only the last time has a known length. Long
    samples are generated again most often. So if tokens are thrown away, the estimate is some percent
    too high, and alarms come too early, never too late.
    """

    lengthBias: float
    """Mean length of trained / of admitted samples: 1 = unbiased, below 1 = short samples are preferred."""

    offPolicyShare: float
    """Share of trained tokens from older weight versions."""

    versionSpan: MeanAndMax
    """Weight versions between the oldest token of a sample and its training."""

    waste: LedgerSummaryWaste
    """Tokens that were thrown away."""

    trainedByKind: LedgerSummaryTrainedByKind
    """Trained samples by the kind of their round, from exact lengths: shows the effect of tail steps on
    length and truncation.
    """

    batchVariation: float
    """Standard deviation / mean, over the mean lengths of the steps."""

    cutsPerGroup: MeanAndMax
    """How often trained groups were cut."""

    lengths: list[LengthRange]
    """Samples by length, four ranges to each doubling; ranges without samples are left out."""

    acceptance: list[Acceptance]
    """Share of samples that were trained, by length."""

    excluded: LedgerSummaryExcluded
    """Accepted groups that were not trained, because their rewards were equal. `lengthBias` and
    `acceptance` count their samples as trained, because the tail policy has accepted them.
    """

    reconciled: LedgerSummaryReconciled
    """Groups and samples that `job.reconcile` counted as trained because Redis had lost them. The lengths
    are unknown, so no other field counts them. All trained requests of the job are `samples` and
    `trained.samples` together.
    """


class LengthRange(TypedDict):
    """Samples of one range of lengths that ended or were cut."""

    fromTokens: float
    """Shortest length of the range."""

    toTokens: float
    """End of the range, exclusive."""

    finished: int
    """Samples that ended in this range."""

    unfinished: int
    """Samples that were cut at this length. Samples that run are not counted."""


class LengthSummary(TypedDict):
    """Lengths of samples, tokens."""

    samples: int
    """Number of samples."""

    meanTokens: float
    """Mean, approximate: up to 1.6 % off."""

    p50Tokens: float
    """Median, approximate: up to 3.2 % below the exact one, and never above the longest sample."""

    p99Tokens: float
    """99th percentile, as approximate as the median."""

    capShare: float
    """Share of the samples that ended at the token budget."""


class ListGroupsReply(TypedDict):
    """Reply of `group.list`."""

    cursor: NotRequired[int]
    """Cursor of the next page, to be sent with the same body; absent on the last page."""

    groups: list[GroupStatus]
    """The groups of the page."""


class ListGroupsRequest(TypedDict):
    """`group.list`: one page of the groups of a round. A closed round loses its groups. Errors:
    JOB_NOT_FOUND, ROUND_NOT_FOUND.
    """

    job: str
    """Id of a job, chosen by its trainer."""

    roundId: NotRequired[str]
    """The round. Default: the round that is not closed, or the last round."""

    set: NotRequired[Literal["live", "accepted", "failed", "lost"]]
    """Set of the groups. `live`: groups that are not accepted yet, in the order of arrival. `accepted`:
    accepted groups. `failed`: groups with a request that failed for good. `lost`: the last 16,384
    groups that failed or were dropped since the last round was completed, with the reason; kept as long
    as the round has groups.
    """

    cursor: NotRequired[int]
    """Cursor of the previous page."""

    limit: NotRequired[int]
    """Maximum groups of the page."""


class ListJobsReply(TypedDict):
    """Reply of `job.list`."""

    cursor: NotRequired[str]
    """Cursor of the next page; absent on the last page."""

    jobs: list[str]
    """The jobs, sorted within the page."""


class ListJobsRequest(TypedDict):
    """`job.list`: one page of the jobs of the pool."""

    limit: NotRequired[int]
    """Maximum entries of the reply."""

    cursor: NotRequired[str]
    """Cursor of the previous page."""

    openOnly: NotRequired[bool]
    """Only jobs with a round that is not closed."""


class ListLeasesReply(TypedDict):
    """Reply of `lb.leases`."""

    cursor: NotRequired[str]
    """Cursor of the next page; absent on the last page."""

    leases: list[LeaseStatus]
    """The leases, oldest first within the page."""


class ListLeasesRequest(TypedDict):
    """`lb.leases`: one page of the leases of the current epoch of a server, of the live epoch of a worker,
    or of the pool. Errors: SERVER_NOT_FOUND, WORKER_NOT_FOUND; VALIDATION_FAILED for `serverId` and
    `workerId` together.
    """

    limit: NotRequired[int]
    """Maximum entries of the reply."""

    cursor: NotRequired[str]
    """Cursor of the previous page."""

    serverId: NotRequired[str]
    """Only leases on the current epoch of this server."""

    workerId: NotRequired[str]
    """Only leases of the live epoch of this worker."""


class ListRequestsReply(TypedDict):
    """Reply of `request.list`."""

    cursor: NotRequired[str]
    """Cursor of the next page; absent on the last page."""

    requests: list[RequestStatus]
    """The requests of the page, unordered."""


class ListRequestsRequest(TypedDict):
    """`request.list`: one page of the requests of a round, a group or a worker that have not ended. Needs
    exactly one of `job` and `workerId`. Errors: JOB_NOT_FOUND, ROUND_NOT_FOUND, GROUP_NOT_FOUND,
    WORKER_NOT_FOUND.
    """

    limit: NotRequired[int]
    """Maximum entries of the reply."""

    cursor: NotRequired[str]
    """Cursor of the previous page."""

    job: NotRequired[str]
    """The job of the round."""

    roundId: NotRequired[str]
    """The round, with `job`. Default: the round that is not closed, or the last round."""

    groupId: NotRequired[str]
    """The requests of this group, with `job`, in any round or in the long-tail queue."""

    workerId: NotRequired[str]
    """The requests of the live epoch of this worker, of any job and round."""

    state: NotRequired[Literal["pending", "claimed", "running", "cutting", "unfinished"]]
    """Only requests in this state."""

    minAgeMs: NotRequired[int]
    """Only attempts of at least this age, milliseconds."""


class ListRoundsReply(TypedDict):
    """Reply of `round.list`."""

    rounds: list[RoundSummary]
    """The rounds, latest step first."""


class ListRoundsRequest(TypedDict):
    """`round.list`: rounds of a job, latest step first: all rounds that still have groups, and the last 16
    other rounds.
    """

    job: str
    """Id of a job, chosen by its trainer."""

    limit: NotRequired[int]
    """Maximum rounds; absent: all of them."""


class ListServersReply(TypedDict):
    """Reply of `server.list`."""

    cursor: NotRequired[str]
    """Cursor of the next page; absent on the last page."""

    servers: list[ServerStatus]
    """The servers of the page."""


class ListServersRequest(TypedDict):
    """`server.list`: one page of servers."""

    limit: NotRequired[int]
    """Maximum entries of the reply."""

    cursor: NotRequired[str]
    """Cursor of the previous page."""


class ListSessionsReply(TypedDict):
    """Reply of `lb.sessions`."""

    cursor: NotRequired[str]
    """Cursor of the next page; absent on the last page."""

    sessions: list[SessionStatus]
    """The sessions of the page, unordered."""


class ListSessionsRequest(TypedDict):
    """`lb.sessions`: one page of the sessions."""

    limit: NotRequired[int]
    """Maximum entries of the reply."""

    cursor: NotRequired[str]
    """Cursor of the previous page."""

    serverId: NotRequired[str]
    """Only sessions that are bound to this server."""


class ListSnapshotsReply(TypedDict):
    """Reply of `job.snapshots`."""

    job: str
    """Id of a job, chosen by its trainer."""

    snapshots: list[JobSnapshotStatus]
    """Complete snapshots, oldest first."""

    saving: NotRequired[str]
    """Tag of an incomplete snapshot."""

    restoring: NotRequired[str]
    """Tag of an unfinished restore: repeat `job.restore`."""


class ListSnapshotsRequest(TypedDict):
    """`job.snapshots`: lists the snapshots that can be restored, oldest first."""

    job: str
    """Id of a job, chosen by its trainer."""

    limit: NotRequired[int]
    """Maximum snapshots, the latest; absent: all of them."""


class ListWorkersReply(TypedDict):
    """Reply of `worker.list`."""

    cursor: NotRequired[str]
    """Cursor of the next page; absent on the last page."""

    workers: list[WorkerStatus]
    """The workers, longest silence first within the page."""


class ListWorkersRequest(TypedDict):
    """`worker.list`: one page of the live worker epochs."""

    limit: NotRequired[int]
    """Maximum entries of the reply."""

    cursor: NotRequired[str]
    """Cursor of the previous page."""


class LoadBalancerStatus(TypedDict):
    """Totals of a pool."""

    pool: str
    """Name of the pool."""

    paused: bool
    """True while `pool.pause` is in force."""

    pausedUntilMs: NotRequired[int]
    """End of a pause with a deadline, time of Redis, milliseconds."""

    setBackAtMs: NotRequired[int]
    """When Redis was last restarted or set back, time of Redis, milliseconds: changes just before may be
    lost. Absent: no restart is known.
    """

    servers: int
    """Registered servers."""

    readyServers: int
    """Servers that take leases."""

    leases: int
    """Live leases."""

    sessions: int
    """Sessions that are bound to a server."""

    sessionsEvicted: int
    """Idle sessions forgotten so far, by age or because the limit was reached."""

    pausedSessions: int
    """Sessions that are paused for lack of KV memory; only with `sessionAdmission`, as the next three."""

    sessionPauses: int
    """Pauses of sessions so far."""

    pausedSessionWaiters: int
    """Acquires of paused sessions that wait for KV memory."""

    newSessionWaiters: int
    """Acquires of new sessions that wait for KV memory."""

    slowScans: int
    """Choices so far that examined more than 128 servers."""

    waiters: int
    """Acquires that wait for room."""

    workers: int
    """Live worker epochs."""

    expiredEpochs: int
    """Expired worker and server epochs that still have leases to return."""

    perServer: list[ServerTotals]
    """The first page of servers; `server.list` returns all."""


class LoadBalancerStatusRequest(TypedDict):
    """`lb.status`: totals of the pool and the first page of servers."""


class LogLevelReply(TypedDict):
    """Reply of one replica."""

    app: str
    """Name of the service of the replica."""

    replicaId: str
    """Id of the replica."""

    level: LogLevel
    """Level that the replica has now."""


class LongtailGroup(TypedDict):
    """One group of the long-tail queue."""

    groupId: str
    """Id of a group, unique in its job, chosen by the trainer."""

    cuts: int
    """Number of cuts of the group."""

    firstStep: int
    """Step in which the group was first submitted."""

    finishedSamples: int
    """Samples that are finished."""

    samples: int
    """Samples that the group needs."""

    tokens: int
    """Tokens of all samples of the group."""


class LongtailListReply(TypedDict):
    """Reply of `longtail.list`."""

    cursor: NotRequired[int]
    """Cursor of the next page, to be sent with the same body; absent on the last page."""

    groups: list[LongtailGroup]
    """The page, oldest first."""


class LongtailListRequest(TypedDict):
    """`longtail.list`: one page of the queue, oldest first."""

    job: str
    """Id of a job, chosen by its trainer."""

    cursor: NotRequired[int]
    """Cursor of the previous page."""

    limit: NotRequired[int]
    """Maximum groups of the page."""


class LongtailRequeuedEvent(TypedDict):
    """A group went to the long-tail queue."""

    finishedSamples: int
    """Samples that are finished."""

    samples: int
    """Samples that the group needs."""

    type: Literal["longtail.requeued"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool of the event."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    job: str
    """Id of the job."""

    roundId: str
    """Id of the round."""

    groupId: str
    """Id of the group."""


class LongtailStats(TypedDict):
    """Size of a long-tail queue."""

    groups: int
    """Groups of the queue."""

    settlingGroups: int
    """Cut groups that are not in the queue yet."""


class LongtailStatsRequest(TypedDict):
    """`longtail.stats`"""

    job: str
    """Id of a job, chosen by its trainer."""


class MeanAndMax(TypedDict):
    """Mean and maximum."""

    mean: float
    """Mean of the values."""

    max: float
    """Largest of the values."""


class MoveLeasesCommand(TypedDict):
    """`worker.<workerId>.move`, sent to a caller that only routes. The caller stops the calls, keeps the
    tokens, moves the leases with `lb.transfer`, and continues on the new servers. Calls that end before
    are released as usual. The command is repeated until the lease has moved or ended, or until the
    deadline.
    """

    workerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. An epoch
    is opaque, and compared for equality only. Epochs are random instead of counted, because a Redis
    that loses its last changes would give the same number twice.
    """

    planId: str
    """The plan of the moves."""

    leases: list[MovedLease]
    """Leases to move."""


class MoveStatus(TypedDict):
    """A move of a plan with its state."""

    requestId: NotRequired[str]
    """The request to move."""

    attempt: NotRequired[str]
    """Id of the running attempt."""

    fromServerId: NotRequired[str]
    """The server on which the request runs."""

    fromEpoch: NotRequired[str]
    """Epoch of `fromServerId`."""

    toServerId: str
    """Id of the target server."""

    toEpoch: NotRequired[str]
    """Epoch of the target server."""

    purpose: NotRequired[Literal["leave", "tier", "wait"]]
    """Reason of the move. `leave`: the server is drained. `tier`: for a smaller batch tier. `wait`: the
    request does not wait on the target.
    """

    means: NotRequired[MoveMeans]
    """How the KV cache gets to the new server. `bind`: there is no cache. `recompute`: the server computes
    the cache again. `transfer`: the server reads the cache from the KV store of both servers.
    """

    costSeconds: NotRequired[float]
    """Cost of the move: engine time of the new server, seconds."""

    gainSeconds: NotRequired[float]
    """Share of the move in the gain of the plan, seconds. Moves with the purpose `tier` have equal shares,
    because they gain only together.
    """

    leaseId: NotRequired[str]
    """The lease, for a caller that only routes."""

    state: MoveState
    """State of the move."""

    refusal: NotRequired[MoveRefusal]
    """Why the move was refused."""

    times: NotRequired[MoveTimes]
    """Times of the move, after the first token on the new server."""


class MoveTimes(TypedDict):
    """Times of a move, up to the first token on the new server."""

    stopMs: int
    """Time from the command to the end of the old attempt, milliseconds; 0 for a request that no worker
    ran.
    """

    placeMs: int
    """Time from the end of the old attempt to the next claim, milliseconds."""

    resumeMs: int
    """Time from the claim to the lease of the new attempt, milliseconds."""

    firstTokenMs: int
    """Time from the lease to the first token, milliseconds."""


class MovedLease(TypedDict):
    """A lease to move to another server."""

    targetServerId: str
    """Id of the target server."""

    targetEpoch: NotRequired[str]
    """Required epoch of the target."""

    leaseId: str
    """Id of a lease, `<sequence>.<acquireId>`. The sequence distinguishes leases with the same acquireId."""


class NextRoundReply(TypedDict):
    """Reply of `round.next`."""

    stamp: str
    """Position of Redis at a reply. Send the latest stamp with the next call that takes a stamp."""

    planId: str
    """Id of the plan. `round.open` refuses the plan if the state has changed since (`PLAN_STALE`)."""

    step: int
    """Training step of the round, from 1."""

    kind: Union[RoundKind, Literal["done"]]
    """Kind of the round, or `done`: no groups are left to train."""

    neededGroups: int
    """Groups that the step trains."""

    newGroups: int
    """New groups to submit."""

    takeGroups: int
    """Groups that `round.open` takes from the long-tail queue."""

    newByDomain: NotRequired[dict[str, int]]
    """New groups to submit, by domain ('' = no domain); only with `domainQuotas`."""

    choice: NotRequired[TailChoice]
    """Choice of an adaptive policy; absent for other policies."""


class NextRoundRequest(TypedDict):
    """`round.next`: returns a plan of the next round, and changes no round."""

    job: str
    """Id of a job, chosen by its trainer."""

    stamp: NotRequired[str]
    """Stamp of the last reply."""

    groupsPerStep: int
    """Groups of one training step."""

    remainingGroups: int
    """Groups of the data set that were never submitted."""

    remainingByDomain: NotRequired[dict[str, int]]
    """Groups that were never submitted, by domain ('' = no domain); required with `domainQuotas`."""

    policy: TailPolicy
    """Tail policy of the round."""

    trainerEpoch: NotRequired[str]
    """Epoch of an earlier open or takeover. A previous trainer is refused (`FENCED`)."""


class OpenRoundReply(TypedDict):
    """Reply of `round.open`."""

    roundId: str
    """Id of a round of a job, chosen by its trainer."""

    trainerEpoch: str
    """Epoch of the trainer. The trainer sends the epoch with every call."""

    state: RoundState
    """State of the round."""

    takenGroups: int
    """Groups taken from the long-tail queue."""

    stamp: str
    """Position of Redis at a reply. Send the latest stamp with the next call that takes a stamp."""


class OpenRoundRequest(TypedDict):
    """`round.open`: opens a round and takes its groups from the long-tail queue; idempotent by planId."""

    job: str
    """Id of a job, chosen by its trainer."""

    stamp: NotRequired[str]
    """Stamp of the last reply."""

    roundId: str
    """Id of the new round, chosen by the trainer; not used before in the job."""

    planId: str
    """Id of the plan of `round.next`."""

    step: int
    """Step of the plan."""

    kind: RoundKind
    """Kind of the plan."""

    neededGroups: int
    """Needed groups of the plan."""

    takeGroups: int
    """Groups taken from the long-tail queue, as in the plan."""

    newGroups: int
    """New groups to submit; with `takeGroups` at least `neededGroups`."""

    policy: TailPolicy
    """Tail policy of the round, as for the plan."""

    weightVersion: NotRequired[int]
    """Weight version of the pool: the last committed version, otherwise the version that the servers
    report. Another version is refused (`WEIGHT_VERSION_MISMATCH`). Default: the version of the pool.
    """

    trainerEpoch: NotRequired[str]
    """Epoch of an earlier open or takeover; absent for the first round of a job."""

    orphanAfterMs: NotRequired[int]
    """Silence of the trainer after which claims stop, milliseconds."""

    abortScope: NotRequired[AbortScope]
    """Scope of an abort or timeout of one request: the whole `group`, or only the `sample`. Without
    `minSamples` other samples, the group ends.
    """

    priority: NotRequired[int]
    """Priority of the requests among waiting acquires of the pool, from 0 (lowest) to 9. Workers claim by
    the weights of jobs, not by priority.
    """

    workerKind: NotRequired[str]
    """Kind of the workers that may claim requests of the job, for example `agent`; workers send their kind
    with `request.claim`. Counts until the next `round.open` of the job. Default: built-in workers,
    which send no kind.
    """


class OverProvisionWhy(TypedDict):
    """How an adaptive over-provision was computed. Times are milliseconds, or tokens if round times could
    not be fitted.
    """

    groups: int
    """Groups in the estimate."""

    censored: int
    """Groups in the estimate that were cut before their end."""

    kneeTokens: NotRequired[float]
    """Length at which a short round ends. Longer groups are the tail of the round."""

    tailShare: NotRequired[float]
    """Share of groups with a sample that is longer than `kneeTokens`."""

    wanted: NotRequired[float]
    """Value of the model, before damping and limits."""

    shortRoundTime: NotRequired[float]
    """Expected time of a short round."""

    longRoundTime: NotRequired[float]
    """Expected time of a long round."""

    limitedBy: NotRequired[Literal["too-few", "damping", "cap", "kv"]]
    """Limit that changed the value: too few lengths, the change of 1/16 a step, the highest value, or the
    KV caches.
    """


class PausePoolReply(TypedDict):
    """Reply of `pool.pause`."""

    paused: bool
    """The pool is paused now."""

    changed: bool
    """False if the pool was already in this state."""


class PausePoolRequest(TypedDict):
    """`pool.pause`: stops leases and claims until `pool.resume`. Acquires and claims are answered
    POOL_PAUSED, at once or after `waitMs`.
    """

    deadlineMs: NotRequired[int]
    """Time after which the pause ends and engines are resumed, milliseconds. A repeat starts the time
    again. Absent: only `pool.resume` ends the pause; a later deadline does not change this.
    """


class PlanRebalanceRequest(TypedDict):
    """`rebalance.plan`: makes a plan and stores the plan for an hour, without moving requests. A repeat
    gets the same plan.
    """

    planId: str
    """Id of the plan."""

    limit: NotRequired[int]
    """Maximum moves in the page."""

    policy: NotRequired[RebalancePolicy]
    """Policy of this plan; default: the policy of the settings."""

    tiers: NotRequired[list[int]]
    """Batch tiers of this plan, strictly descending; default: the tiers of the settings."""


class PoolHistoryReply(TypedDict):
    """Reply of `pool.history`."""

    versions: list[PoolVersion]
    """Versions, latest first. The first version is in force."""


class PoolHistoryRequest(TypedDict):
    """`pool.history`: the last 32 versions of the settings, latest first."""

    limit: NotRequired[int]
    """Maximum versions, the latest; absent: all of them."""


class PoolLedgerReply(TypedDict):
    """Reply of `pool.ledger`."""

    summary: LedgerSummary
    """Costs over all samples together; `batchVariation` compares the steps of all jobs with each other."""

    jobs: int
    """Number of jobs in the summary."""


class PoolLedgerRequest(TypedDict):
    """`pool.ledger`: the cost of the tail policies of all jobs of the pool, over all their steps. The
    reply adds up the ledgers of all present jobs (`job.ledger`). Deleted jobs do not count.
    """


class PoolSetBackEvent(TypedDict):
    """Redis was restarted or set back: the last changes of the pool and its last events may be lost."""

    type: Literal["pool.set-back"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool of the event."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""


class PoolSettings(TypedDict):
    """Settings of a pool, which can be changed while it runs. All replicas use them from the next call on."""

    policy: NotRequired[RoutingPolicy]
    """Default `least-inflight`."""

    affinityBreakMargin: NotRequired[Union[int, Literal["never"]]]
    """A session leaves its server if that server has more leases than the best server of the policy and
    this margin together: 0 to 1,000,000. `never` (the default): a session stays under any load.
    """

    affinityBreakMaxContextTokens: NotRequired[int]
    """An acquire with more `contextTokens` stays on the server of its session, because another prefill
    would cost more. Unset = no limit.
    """

    groupPlacement: NotRequired[GroupPlacement]
    """Default `group-spread`."""

    groupAffinityCap: NotRequired[int]
    """Maximum leases of one group on one server with affinity; further leases go to other servers. Default
    8.
    """

    groupSpreadBelowTokens: NotRequired[int]
    """`auto` spreads samples of a group with fewer `contextTokens` than this. Default 2,048."""

    groupSpreadAboveKvUse: NotRequired[float]
    """`auto` spreads away from a server that reported a KV use above this, 0 to 1. Default 0.7."""

    sessionIdleMs: NotRequired[int]
    """Idle time after which a session is forgotten, milliseconds. Default: SESSION_IDLE_MS of the
    load-balancer.
    """

    maxSessions: NotRequired[int]
    """Maximum sessions. When there are more, the session that was idle longest is forgotten. Default
    200,000.
    """

    sessionAdmission: NotRequired[SessionAdmission]
    """`kv`: sessions are admitted at turn boundaries by the KV memory that their contexts need; also sets
    the policy `least-kv` if the pool has no policy. Default `off`.
    """

    sessionKvTokens: NotRequired[int]
    """KV memory of a server whose engine reports none, tokens. Unset = such a server takes all sessions."""

    pausedSessionWaitMs: NotRequired[int]
    """A paused session whose turn has waited for this time goes on whatever the KV memory. Default
    600,000.
    """

    decisionSampleEvery: NotRequired[int]
    """Every n-th decision is stored with its full snapshot. Default 1,000."""

    poolMaxInflight: NotRequired[int]
    """Maximum leases of the whole pool. Unset = the sum over all servers."""

    requiredWeightVersion: NotRequired[int]
    """A server with another weight version is `quarantined` until it reports this version. Unset = any
    version.
    """

    slowStartMs: NotRequired[int]
    """Time in which a new or restarted server reaches its capacity, milliseconds. Default 0 = at once."""

    slowStartFraction: NotRequired[float]
    """Share of the capacity with which a server begins in slow start, at least one lease. Default 0.1."""

    breakerFailures: NotRequired[int]
    """Consecutive failed calls (outcome `failed` of `lb.release`) that make a server suspect although it
    answers probes; never more than half of the servers. 0 = off. Default 5.
    """

    breakerOpenMs: NotRequired[int]
    """Time that a server is then suspect, milliseconds; after that the server gets one call first. Default
    10,000.
    """

    adaptiveConcurrency: NotRequired[Literal[0, 1]]
    """1 = the capacity of a server follows the load that its engine reports. Default 0 = off."""

    adaptIntervalMs: NotRequired[int]
    """Pause between two changes of a server's capacity, milliseconds. Default 2,000."""

    streamInterval: NotRequired[int]
    """Tokens of one event that workers and gateways ask engines for, for responses that no client reads
    token by token. Default: STREAM_INTERVAL of the worker or gateway.
    """


class PoolSettingsReply(TypedDict):
    """Reply of `pool.configure`."""

    version: int
    """Version of the settings, which grows with each change of settings. A change of weights does not
    change it.
    """

    settings: PoolSettings
    """Settings that `pool.configure` has set, and the weight version that a commit requires."""

    defaults: NotRequired[PoolSettings]
    """Values of settings that are not set; absent for a setting without a value, or with one of each
    service.
    """

    effective: NotRequired[PoolSettings]
    """Values in force: the settings, otherwise the defaults."""

    policy: RoutingPolicy
    """The active policy."""

    nextPolicy: NotRequired[RoutingPolicy]
    """The policy that becomes active when the load keys of all servers are computed."""


class PoolSettingsRequest(TypedDict):
    """`pool.settings`: returns the settings of the pool."""


class PoolVersion(TypedDict):
    """The settings of a pool from one change to the next."""

    version: int
    """Version of the settings, which grows with each change of settings. A change of weights does not
    change it.
    """

    settings: PoolSettings
    """Settings that `pool.configure` has set, and the weight version that a commit requires."""

    sinceMs: int
    """When the version came into force, milliseconds since 1970."""


class Prompt(TypedDict):
    """Contents of a prompt payload: exactly one of text, messages and promptTokenIds."""

    text: NotRequired[str]
    """The prompt as a text, which the engine tokenizes; not empty."""

    messages: NotRequired[list[ChatMessage]]
    """The prompt as a chat, to which the engine applies its template; not empty."""

    promptTokenIds: NotRequired[list[int]]
    """The prompt as token ids, each at least 0 and below 2^31; not empty."""

    engineFields: NotRequired[dict[str, Any]]
    """Further fields of the request to the engine, e.g. `tools`, `lora_path`, `image_data`; passed on
    unread. Fields that Broomwagon sets are refused, e.g. the prompt, the budget, `n`. Further fields of
    the response are in `engineFields` of the segments.
    """


class PromptLengths(TypedDict):
    """Expected response length of one prompt."""

    capShare: float
    """Share of the samples that ended at the token budget."""

    promptId: str
    """Id of the prompt in the prompt memory."""

    samples: int
    """Number of known lengths, up to 64. Beyond 64, older lengths count less."""

    medianTokens: float
    """Median length of the responses, tokens."""

    deviationLog: float
    """Standard deviation of the natural logarithm of the lengths."""


class PromptLengthsReply(TypedDict):
    """Reply of `prompt.lengths`."""

    prompts: list[PromptLengths]
    """The prompts that are in the memory."""


class PromptLengthsRequest(TypedDict):
    """`prompt.lengths`: returns the expected response lengths of prompts."""

    promptIds: list[str]
    """Ids of the prompts in the prompt memory."""


class PutPayloadReply(TypedDict):
    """Reply of `payload.put`."""

    ref: NotRequired[str]
    """Reference, when all chunks are stored."""

    receivedChunks: int
    """Number of stored chunks."""


class PutPayloadRequest(TypedDict):
    """`payload.put`: stores one chunk of at most 256 kB; the reply to the last chunk contains the
    reference. Safe to repeat.
    """

    job: str
    """The job that the payload belongs to."""

    groupId: NotRequired[str]
    """The group that owns the payload, for a prompt. Exactly one of `groupId` and `requestId`."""

    requestId: NotRequired[str]
    """The request that owns the payload, for generated tokens."""

    name: str
    """Name among the payloads of the owner: `prompt`, or the attempt."""

    chunkIndex: int
    """Index of this chunk, from 0."""

    chunkCount: int
    """Chunks of the whole payload."""

    data: str
    """The chunk in base64. All chunks together are the JSON of a `Prompt`, or of a `SegmentPayload` for
    the tokens of a segment. Services do not read this JSON.
    """


class QuarantineServerRequest(TypedDict):
    """`server.quarantine`: takes a server out of service at once, and keeps the registration, so that
    somebody can examine the engine. The epoch of the server expires with its leases and sessions. The
    server is `failed` until the engine has restarted, then `cordoned` until `server.uncordon`.
    """

    serverId: str
    """Id of a server (one engine with its address), chosen by the caller that registers it."""

    reason: NotRequired[str]
    """Text for the log and the event."""


class RankedServer(TypedDict):
    """A server and its load key."""

    serverId: str
    """Id of a server (one engine with its address), chosen by the caller that registers it."""

    key: float
    """Load key before the choice, in the unit of the policy; lower is better."""


class ReadGroup(TypedDict):
    """A group that was read completely."""

    groupId: str
    """Id of a group, unique in its job, chosen by the trainer."""

    digest: str
    """Digest of the group, from the results."""


class ReadinessCheck(TypedDict):
    """One check of `/readyz`."""

    check: str
    """Name of the check, for example `redis`."""

    passes: bool
    """Whether the check passes."""

    reason: NotRequired[str]
    """Why the check fails, or a warning of a check that passes."""


class ReadinessReply(TypedDict):
    """Reply of one replica."""

    app: str
    """Name of the service of the replica."""

    replicaId: str
    """Id of the replica."""

    version: NotRequired[str]
    """Version of Broomwagon; absent for a replica of an earlier release."""

    ready: bool
    """True if all checks pass: then requests may be sent to the replica."""

    checks: list[ReadinessCheck]
    """The checks of `/readyz` of the replica."""

    alarms: NotRequired[list[ReplicaAlarm]]
    """The alarms of the replica, of all pools; absent for a replica of an earlier release."""


class RebalanceSettings(TypedDict):
    """Settings of the rebalancer of a pool (libs/policies/src/rebalance/README.md)."""

    mode: NotRequired[Literal["off", "dry-run", "on"]]
    """`off`: no plans. `on`: make plans and move requests. `dry-run`: only make, store and count plans."""

    policy: NotRequired[RebalancePolicy]
    """Policy that plans moves."""

    tiers: NotRequired[list[int]]
    """Batch sizes for which the engines have captured graphs; strictly descending."""

    stepBaseSeconds: NotRequired[float]
    """A decode step takes `stepBaseSeconds` + `stepPerSequenceSeconds` x tier."""

    stepPerSequenceSeconds: NotRequired[float]
    """Time of a decode step for each sequence of its tier, seconds."""

    prefillTokensPerSecond: NotRequired[float]
    """Prefill speed of an engine, tokens per second."""

    kvBytesPerToken: NotRequired[float]
    """Size of the KV cache of one token in a KV store, bytes; 0: every move computes the cache again.
    Servers with the same label `kv-store` share a store.
    """

    kvBytesPerSecond: NotRequired[float]
    """Bytes that an engine reads from its KV store per second; 0: every move computes the cache again."""

    kvSetupSeconds: NotRequired[float]
    """Time before the first byte of a cache is read from the KV store, seconds."""

    minGainRatio: NotRequired[float]
    """Minimum ratio of the gain of a plan to its longest stall."""

    pauseSeconds: NotRequired[float]
    """Fixed time that every plan costs, seconds."""

    maxMovesPerRequest: NotRequired[int]
    """Maximum moves of one request."""

    minMoveIntervalMs: NotRequired[int]
    """Minimum time between two moves of one request, milliseconds."""

    minRemainingTokens: NotRequired[int]
    """A request with fewer expected remaining tokens stays."""

    movesDrained: NotRequired[bool]
    """Move requests away from draining servers."""

    maxRunning: NotRequired[int]
    """For `tier-min`: maximum requests that an engine runs at once, `max_num_running_reqs` of the
    published rule; 0: the largest tier.
    """

    minPlanIntervalMs: NotRequired[int]
    """Minimum time between two plans, milliseconds."""

    planIntervalMs: NotRequired[int]
    """Time after the last plan until a plan is made without a trigger, milliseconds."""

    planIntervalSteps: NotRequired[int]
    """Decode steps between two plans, `check_interval` of the published rule. Only a drain triggers a plan
    before. 0: changes and `planIntervalMs` trigger plans.
    """

    version: int
    """Version of the settings, increased by 1 with each change; 0: the defaults."""


class RebalanceStatus(TypedDict):
    """A plan with its moves."""

    cursor: NotRequired[int]
    """Cursor of the next page, to be sent with the same body; absent on the last page."""

    policy: NotRequired[RebalancePolicy]
    """The policy that made the plan."""

    tierBefore: NotRequired[int]
    """The largest batch tier of all servers at present. A batch above all tiers counts with its size."""

    tierAfter: NotRequired[int]
    """The largest batch tier after the moves."""

    gainSeconds: NotRequired[float]
    """Wall time that the plan is expected to save, seconds."""

    costSeconds: NotRequired[float]
    """Engine time of all moves, seconds."""

    stallSeconds: NotRequired[float]
    """Longest time that one server spends on the requests that it takes, seconds: the cost in wall time,
    without `pauseSeconds`.
    """

    reason: NotRequired[NoMoveReason]
    """Why the plan has no moves."""

    planId: str
    """Id of the plan, from the request."""

    plannedAtMs: int
    """When the plan was made, milliseconds since 1970."""

    moves: int
    """Number of moves of the plan."""

    sentMoves: int
    """Number of moves that `rebalance.execute` has processed."""

    states: dict[str, int]
    """Number of moves, by state."""

    results: list[MoveStatus]
    """One page of the moves."""


class RebalanceStatusRequest(TypedDict):
    """`rebalance.status`: returns a plan with the state of each move."""

    planId: str
    """Id of the plan."""

    limit: NotRequired[int]
    """Maximum moves in the page."""

    cursor: NotRequired[int]
    """Cursor of the previous page."""


class ReconcileJobReply(TypedDict):
    """Reply of `job.reconcile`."""

    trainerEpoch: str
    """Epoch of the trainer of the job. The trainer sends the epoch with every later call."""

    stepsTrained: int
    """Steps trained (rounds closed)."""

    submittedGroups: int
    """Groups ever submitted: the trainer's position in its data."""

    stamp: str
    """Position of Redis at a reply. Send the latest stamp with the next call that takes a stamp."""

    openRoundId: NotRequired[str]
    """The round that is not closed, if any; read its results from the beginning."""

    countedGroups: int
    """Groups of `groups` that were not counted as trained before."""

    unknown: list[str]
    """Groups of `groupIds` that Redis does not know: submit them again."""


class ReconcileJobRequest(TypedDict):
    """`job.reconcile`: restores state that Redis may have lost, after GENERATION_CHANGED and a takeover.
    The trainer names the steps that Redis does not count as trained, oldest first, each in pages. With
    `groupIds`, the trainer asks which groups Redis knows. All calls may be repeated.
    """

    job: str
    """Id of a job, chosen by its trainer."""

    stamp: NotRequired[str]
    """Stamp of the last reply."""

    trainerEpoch: NotRequired[str]
    """Epoch of the takeover; absent after a takeover with the error JOB_NOT_FOUND: then the job is created
    again.
    """

    takeoverId: NotRequired[str]
    """Id of the failed `round.takeover`; required without `trainerEpoch`, so that a repeated call gets the
    same epoch.
    """

    step: NotRequired[int]
    """A trained step; with `groups`."""

    groups: NotRequired[list[TrainedGroup]]
    """Groups of the step. Each group counts as trained once, in any state, and also if Redis does not know
    the group.
    """

    isLast: NotRequired[bool]
    """The last page of the step: the step counts as trained."""

    groupIds: NotRequired[list[str]]
    """Groups that were submitted and not trained. `unknown` of the reply has groups that Redis does not
    know.
    """


class ReconcileServerReply(TypedDict):
    """Reply of `server.reconcile`."""

    cursor: NotRequired[str]
    """Cursor of the next page; absent on the last page."""

    leases: int
    """Present leases of the server."""

    engineRunning: NotRequired[int]
    """Running requests in the load report. `engineRunning` to `drift` are absent if the engine reports no
    load.
    """

    engineWaiting: NotRequired[int]
    """Requests that wait in the engine."""

    reportAgeMs: NotRequired[int]
    """Age of the report of the engine, milliseconds. An old report explains a difference."""

    drift: NotRequired[int]
    """Leases minus running and waiting requests."""

    holders: list[LeaseHolder]
    """Workers of this page of leases; a worker may be in several pages."""

    returned: int
    """Leases of expired worker epochs in this page."""


class ReconcileServerRequest(TypedDict):
    """`server.reconcile`: makes workers prove their leases on a server, for example when leases and engine
    load differ. Leases of expired worker epochs are returned at once. Live workers are asked for a
    `worker.sync` at their next heartbeat, and return leases that they do not hold. Errors:
    SERVER_NOT_FOUND, FENCED.
    """

    serverId: str
    """Id of a server (one engine with its address), chosen by the caller that registers it."""

    epoch: NotRequired[str]
    """Required epoch; FENCED if the server has another epoch."""

    cursor: NotRequired[str]
    """Cursor of the previous page."""


class RefusedComplete(TypedDict):
    """A refused report, which has changed nothing."""

    error: WireError
    """The field `error` of a reply."""


class RefusedItem(TypedDict):
    """A refused acquire."""

    acquireId: str
    """Id of the acquire, from the request."""

    error: WireError
    """Why there is no lease."""


class RefusedSave(TypedDict):
    """A refused save, which has changed nothing."""

    error: WireError
    """The field `error` of a reply."""


class RegisterServerReply(TypedDict):
    """Reply of `server.register`."""

    serverId: str
    """Id of a server (one engine with its address), chosen by the caller that registers it."""

    epoch: str
    """Epoch of the server."""

    state: ServerState
    """State of the server."""

    weightVersionTaken: NotRequired[Literal[False]]
    """False if the engine has not reset its prefix cache: the reported version does not count yet, and the
    server takes no leases. The load-balancer asks for the reset again at each probe and each report of
    the version.
    """


class RegisterServerRequest(TypedDict):
    """`server.register`: adds or updates a server; idempotent. The same instanceId updates the description
    of the server, never its state. Another instanceId, or none, starts a new epoch: leases and sessions
    of the old epoch expire, and the server is `pending` until it answers a probe or sends a heartbeat.
    The call waits for the first probe, at most a second.
    """

    serverId: str
    """Id of a server (one engine with its address), chosen by the caller that registers it."""

    endpoint: str
    """Base URL of the engine, without user, password and query. Callers see this URL."""

    dialect: EngineDialect
    """API of the engine."""

    instanceId: NotRequired[str]
    """Id of this start of the engine. A registration without an instanceId counts as a restart, unless
    `registrationId` is the id of the last registration.
    """

    model: NotRequired[str]
    """Model of the engine, returned with leases."""

    maxInflight: int
    """Maximum leases at the same time."""

    weight: NotRequired[float]
    """Relative capacity: load counts as leases / weight."""

    weightVersion: NotRequired[int]
    """Weight version of the engine; absent = unknown."""

    labels: NotRequired[dict[str, str]]
    """Labels that an acquire may require, for example a zone or a GPU type."""

    capabilities: NotRequired[EngineCapabilities]
    """Capabilities of the engine; absent = the load-balancer probes the engine."""

    probe: NotRequired[bool]
    """False for an engine that only callers can reach. Such an engine is not probed and counts as
    answering.
    """

    registrationId: NotRequired[str]
    """Id of this call, for idempotency without an instanceId. A repeat of the last registration keeps the
    epoch; a late repeat of an earlier registration is answered FENCED. The clients of this repository
    add the id themselves.
    """


class RegisterWorkerReply(TypedDict):
    """Reply of `worker.register`."""

    workerEpoch: str
    """Epoch of the worker, for every later call."""

    ttlMs: int
    """Time without a heartbeat after which the epoch expires, milliseconds."""

    serverTimeMs: int
    """Time of Redis, milliseconds since 1970."""


class RegisterWorkerRequest(TypedDict):
    """`worker.register`: starts a new epoch of a worker. The previous epoch expires with all its leases
    and attempts.
    """

    workerId: str
    """Id of the worker, chosen by the worker, and the same after restarts."""

    registrationId: str
    """Id of the registration, for idempotency: a repeat gets the same epoch."""

    ttlMs: NotRequired[int]
    """Time without a heartbeat after which the epoch expires, milliseconds."""


class ReleaseItem(TypedDict):
    """One lease to release."""

    leaseId: NotRequired[str]
    """The lease; exactly one of leaseId and acquireId."""

    acquireId: NotRequired[str]
    """The acquire of the lease. An acquire that arrives after its release is refused."""

    outcome: ReleaseOutcome
    """How the call under the lease ended."""

    tokens: NotRequired[int]
    """Tokens generated under this lease."""

    retryAfterMs: NotRequired[int]
    """With `busy`: pause that the engine has asked for (`Retry-After`), milliseconds. Default: 1 s,
    doubled with each `busy` in a row, at most 30 s.
    """


class ReleaseManyReply(TypedDict):
    """Reply of `lb.release-many`."""

    results: list[ReleaseReply]
    """Results in the order of the request."""


class ReleaseManyRequest(TypedDict):
    """`lb.release-many`"""

    releases: list[ReleaseItem]
    """Leases to release."""


class ReleaseReply(TypedDict):
    """Reply of `lb.release`."""

    released: bool
    """True if this call released the lease."""

    reason: Literal["released", "already-released", "unknown", "fenced", "tombstone"]
    """Why. `tombstone`: there was no lease, and a later acquire with this acquireId is refused."""

    mostServersFail: NotRequired[bool]
    """After the outcome `failed`: true if more than half of the servers answer probes and fail calls of
    other prompts too. Then the failure says nothing about the request.
    """


class ReleaseRequest(TypedDict):
    """`lb.release`: releases a lease. The message may have no reply subject."""

    leaseId: NotRequired[str]
    """The lease; exactly one of leaseId and acquireId."""

    acquireId: NotRequired[str]
    """The acquire of the lease. An acquire that arrives after its release is refused."""

    outcome: ReleaseOutcome
    """How the call under the lease ended."""

    tokens: NotRequired[int]
    """Tokens generated under this lease."""

    retryAfterMs: NotRequired[int]
    """With `busy`: pause that the engine has asked for (`Retry-After`), milliseconds. Default: 1 s,
    doubled with each `busy` in a row, at most 30 s.
    """


class RememberPromptsReply(TypedDict):
    """Reply of `prompt.remember`."""

    remembered: int
    """Number of prompts with new lengths, from this call or, for a repeat, from the first call."""


class RememberPromptsRequest(TypedDict):
    """`prompt.remember`: adds lengths to the prompt memory of the pool; lengths of trained samples are
    added automatically.
    """

    prompts: list[KnownPrompt]
    """Prompts to remember, with lengths of their samples."""

    rememberId: NotRequired[str]
    """Id of this call, for idempotency: a repeat within 10 minutes adds nothing. Absent: a repeat adds the
    lengths again.
    """


class RemoveServerReply(TypedDict):
    """Reply of `server.remove`."""

    removed: bool
    """False if the server is unknown."""


class RemoveServerRequest(TypedDict):
    """`server.remove`: removes a server. The leases of the server expire at once, and later releases
    change nothing.
    """

    serverId: str
    """Id of a server (one engine with its address), chosen by the caller that registers it."""


class ReplicaAlarm(TypedDict):
    """An alarm that a replica has raised, and that has not ended."""

    pool: str
    """Pool of the alarm; `*`: of no single pool."""

    alarm: str
    """Name of the alarm, as in `broomwagon_alarms_active`."""

    message: str
    """What the replica has logged."""

    sinceMs: int
    """When the alarm was raised, by the clock of the replica, milliseconds since 1970."""


class RequestAbortedEvent(TypedDict):
    """A request was dropped for good."""

    type: Literal["request.aborted"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool of the event."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    requestId: str
    """Id of the request."""

    attempt: str
    """Last attempt of the request."""

    tokens: int
    """Tokens of all attempts of the request."""


class RequestCounts(TypedDict):
    """Requests by state. `submitted` is the sum of all other fields."""

    submitted: int
    """All submitted samples."""

    pending: int
    """Requests without a worker."""

    claimed: int
    """Claimed requests that do not run yet."""

    running: int
    """Requests that run on an engine."""

    cutting: int
    """Requests that are being stopped."""

    unfinished: int
    """Unfinished requests in the long-tail queue."""

    finished: int
    """Finished, untrained requests."""

    trained: int
    """Trained requests."""

    failed: int
    """Requests that failed for good."""

    dropped: int
    """Dropped requests."""


class RequestDetails(TypedDict):
    """One request with its history."""

    segments: list[Segment]
    """Segments of ended attempts, in order."""

    segmentsFollow: NotRequired[Literal[True]]
    """The segments do not fit this message, so `segments` is empty. Read the segments with
    `request.segments`.
    """

    requestId: str
    """Id of a request: `<job>/<groupId>/<sampleIndex>`, with `~0` for `~` and `~1` for `/` in job and
    group; unique in the pool.
    """

    attempt: str
    """Fencing number of one attempt of a request: `<number>-<random>`. The number counts the attempts, for
    display. Services compare the whole text. A request that was never claimed has the attempt `0`.
    """

    failures: int
    """Failures of the engine or of the request so far."""

    tokenCount: int
    """Reported tokens of all attempts. The number of a stuck request does not grow."""

    maxTokens: NotRequired[int]
    """Token budget of the request; absent if Redis has lost its group."""

    workerId: NotRequired[str]
    """The worker of the request. Without a worker, `workerEpoch` and `ageMs` are absent too."""

    workerEpoch: NotRequired[str]
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. An epoch
    is opaque, and compared for equality only. Epochs are random instead of counted, because a Redis
    that loses its last changes would give the same number twice.
    """

    ageMs: NotRequired[int]
    """Time since the claim, milliseconds."""

    serverId: NotRequired[str]
    """The server of the request, after the report of the worker."""

    boundServerId: NotRequired[str]
    """The target server of a move, until the request runs there."""

    tokensPerSecond: NotRequired[float]
    """Mean tokens of the attempt in a second, until its last report; absent before its first tokens are
    reported.
    """

    tokensAgeMs: NotRequired[int]
    """Time since tokens of the attempt were reported last, milliseconds; workers report them periodically."""

    waiting: NotRequired[Literal[True]]
    """The engine sends no tokens: the request waits in the engine or was preempted, or the engine hangs."""

    state: Union[Literal["pending", "claimed", "running", "cutting", "unfinished"], Literal["finished"], Literal["trained"], Literal["failed"], Literal["dropped"]]
    """State of the request (docs/architecture.md: States of a request)."""

    job: str
    """Id of a job, chosen by its trainer."""

    groupId: str
    """Id of a group, unique in its job, chosen by the trainer."""

    roundId: NotRequired[str]
    """The round of the group; absent in the long-tail queue."""

    firstStep: NotRequired[int]
    """Step in which the group was first submitted."""

    cuts: int
    """Number of cuts of the group."""


class RequestFailure(TypedDict):
    """Why a request failed for good."""

    requestId: str
    """Id of the request."""

    reason: ReturnReason
    """Why the last attempt ended."""

    message: NotRequired[str]
    """Text for people."""

    atMs: int
    """When the request failed, milliseconds since 1970."""


class RequestFinishedEvent(TypedDict):
    """A sample was finished."""

    finishReason: Literal["stop", "length"]
    """Why the response ended: `stop` (the model ended it) or `length` (the budget was used up)."""

    type: Literal["request.finished"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool of the event."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    requestId: str
    """Id of the request."""

    roundId: str
    """Round of the attempt."""

    attempt: str
    """Id of the attempt."""

    queuedAtMs: NotRequired[int]
    """When the request became pending, by the clock of Redis, milliseconds since 1970."""

    claimedAtMs: NotRequired[int]
    """When a worker claimed the request, by the clock of Redis, milliseconds since 1970."""

    serverId: NotRequired[str]
    """The server that the worker has reported; absent if the worker has reported none."""

    attemptTokens: int
    """Tokens of this attempt."""

    run: NotRequired[AttemptRun]
    """Measurements of the worker; absent if the attempt had no server, or if the worker has expired."""

    tokens: int
    """Tokens of all attempts of the request."""


class RequestLostEvent(TypedDict):
    """A request cannot run any more, because Redis has lost keys of it."""

    type: Literal["request.lost"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool of the event."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    requestId: str
    """Id of the request."""


class RequestSegmentsReply(TypedDict):
    """Reply of `request.segments`."""

    cursor: NotRequired[int]
    """Cursor of the next page, to be sent with the same body; absent on the last page."""

    segments: list[Segment]
    """The segments, in order."""


class RequestSegmentsRequest(TypedDict):
    """`request.segments`: one page of the segments of a request, for segments that do not fit a claim or
    result.
    """

    requestId: str
    """Id of a request: `<job>/<groupId>/<sampleIndex>`, with `~0` for `~` and `~1` for `/` in job and
    group; unique in the pool.
    """

    cursor: NotRequired[int]
    """Cursor of the previous page."""

    limit: NotRequired[int]
    """Maximum segments of the page; absent: as many as fit a message."""


class RequestStatus(TypedDict):
    """One request that has not ended."""

    requestId: str
    """Id of a request: `<job>/<groupId>/<sampleIndex>`, with `~0` for `~` and `~1` for `/` in job and
    group; unique in the pool.
    """

    state: Literal["pending", "claimed", "running", "cutting", "unfinished"]
    """State of the request (docs/architecture.md: States of a request)."""

    attempt: str
    """Fencing number of one attempt of a request: `<number>-<random>`. The number counts the attempts, for
    display. Services compare the whole text. A request that was never claimed has the attempt `0`.
    """

    failures: int
    """Failures of the engine or of the request so far."""

    tokenCount: int
    """Reported tokens of all attempts. The number of a stuck request does not grow."""

    maxTokens: NotRequired[int]
    """Token budget of the request; absent if Redis has lost its group."""

    workerId: NotRequired[str]
    """The worker of the request. Without a worker, `workerEpoch` and `ageMs` are absent too."""

    workerEpoch: NotRequired[str]
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. An epoch
    is opaque, and compared for equality only. Epochs are random instead of counted, because a Redis
    that loses its last changes would give the same number twice.
    """

    ageMs: NotRequired[int]
    """Time since the claim, milliseconds."""

    serverId: NotRequired[str]
    """The server of the request, after the report of the worker."""

    boundServerId: NotRequired[str]
    """The target server of a move, until the request runs there."""

    tokensPerSecond: NotRequired[float]
    """Mean tokens of the attempt in a second, until its last report; absent before its first tokens are
    reported.
    """

    tokensAgeMs: NotRequired[int]
    """Time since tokens of the attempt were reported last, milliseconds; workers report them periodically."""

    waiting: NotRequired[Literal[True]]
    """The engine sends no tokens: the request waits in the engine or was preempted, or the engine hangs."""


class RequeueReply(TypedDict):
    """Reply of `longtail.requeue`."""

    results: list[RequeueResult]
    """One result for each sample of the request, in order."""


class RequeueRequest(TypedDict):
    """`longtail.requeue`: a worker, or an agent loop of the trainer, returns unfinished samples with their
    tokens. The whole group goes to the long-tail queue, with its finished samples, as after a cut. An
    operator calls the operation without `workerId`: then workers get a command to stop the named
    samples, and the group is in the queue when all workers have confirmed.
    """

    job: str
    """Id of a job, chosen by its trainer."""

    workerId: NotRequired[str]
    """The worker that returns the samples; with `workerEpoch`. Absent: an operator."""

    workerEpoch: NotRequired[str]
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. An epoch
    is opaque, and compared for equality only. Epochs are random instead of counted, because a Redis
    that loses its last changes would give the same number twice.
    """

    requests: list[RequeuedSample]
    """The samples. Each sample gets a separate answer."""


class RequeueResult(TypedDict):
    """Result for one returned sample."""

    requestId: str
    """Id of a request: `<job>/<groupId>/<sampleIndex>`, with `~0` for `~` and `~1` for `/` in job and
    group; unique in the pool.
    """

    state: NotRequired[Literal["pending", "cutting", "unfinished", "failed", "dropped"]]
    """State of the sample; absent if there is an error. `cutting`: the worker has not confirmed yet.
    `dropped`, `failed`: the group of the sample had ended before.
    """

    error: NotRequired[WireError]
    """Why the sample was not accepted."""


class RequeuedSample(TypedDict):
    """A sample that its worker returns unfinished."""

    requestId: str
    """Id of a request: `<job>/<groupId>/<sampleIndex>`, with `~0` for `~` and `~1` for `/` in job and
    group; unique in the pool.
    """

    attempt: str
    """Fencing number of one attempt of a request: `<number>-<random>`. The number counts the attempts, for
    display. Services compare the whole text. A request that was never claimed has the attempt `0`.
    """

    segment: NotRequired[Segment]
    """Segment with the tokens so far; absent: the last partial save counts."""


class RestoreJobReply(TypedDict):
    """Reply of `job.restore`."""

    trainerEpoch: str
    """Epoch of the trainer of the job. The trainer sends the epoch with every later call."""

    stepsTrained: int
    """Steps trained (rounds closed)."""

    submittedGroups: int
    """Groups ever submitted: the trainer's position in its data."""

    stamp: str
    """Position of Redis at a reply. Send the latest stamp with the next call that takes a stamp."""

    tag: str
    """Tag of the snapshot, from the request."""

    state: Literal["restoring", "restored"]
    """`restoring`: not finished; send the same body again."""

    groups: int
    """Groups of the long-tail queue."""


class RestoreJobRequest(TypedDict):
    """`job.restore`: returns the job to a snapshot and fences every earlier trainer. The trainer submits
    later groups again, because they are unknown after the restore.
    """

    job: str
    """Id of a job, chosen by its trainer."""

    stamp: NotRequired[str]
    """Stamp of the last reply."""

    trainerEpoch: NotRequired[str]
    """Epoch of the trainer; absent: the previous trainer is fenced, as by `round.takeover`."""

    tag: str
    """Tag of a complete snapshot."""


class ResumePoolRequest(TypedDict):
    """`pool.resume`: ends a pause; waiting acquires and claims are served."""


class RewardGroupsReplyOutcomes(TypedDict):
    """Part of another type."""

    groupId: str
    """Id of a group, unique in its job, chosen by the trainer."""

    outcome: RewardOutcome
    """Consequence of the rewards for a group. `kept`: the group is trained. `excluded`: the group is not
    trained. `replaced`: the group is not trained, and the round accepts another group.
    """


class RewardGroupsReply(TypedDict):
    """Reply of `round.reward`."""

    stamp: str
    """Position of Redis at a reply. Send the latest stamp with the next call that takes a stamp."""

    outcomes: list[RewardGroupsReplyOutcomes]
    """One outcome for each group of the request, in order: the outcome of the group's first report."""


class RewardGroupsRequest(TypedDict):
    """`round.reward`: reports the rewards of accepted groups. Only the first report of a group counts.
    `equalRewards` of the policy decides what happens to a group with equal rewards.
    """

    job: str
    """Id of a job, chosen by its trainer."""

    stamp: NotRequired[str]
    """Stamp of the last reply."""

    trainerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. An epoch
    is opaque, and compared for equality only. Epochs are random instead of counted, because a Redis
    that loses its last changes would give the same number twice.
    """

    roundId: str
    """Id of a round of a job, chosen by its trainer."""

    groups: list[GroupRewards]
    """The groups, each once."""

    remainingGroups: NotRequired[int]
    """Groups that the trainer can still submit, for `equalRewards` `replace`: no group is replaced when no
    other group is left.
    """


class RollbackPoolRequest(TypedDict):
    """`pool.rollback`: sets all settings as in an earlier version; this makes a new version. A
    `requiredWeightVersion` becomes the last committed weight version, if weights were committed.
    """

    version: int
    """A version of `pool.history`."""

    ifVersion: NotRequired[int]
    """Required present version. Otherwise VERSION_MISMATCH, unless the settings are already as requested."""


class RollbackWeightsRequest(TypedDict):
    """`weights.rollback`: the pool resumes with its previous weights. Servers with the new weights are
    `quarantined`.
    """

    syncId: str
    """The change of weights."""

    trainerEpoch: NotRequired[str]
    """Epoch of the trainer of the job; absent: the epoch of `weights.begin`."""

    stamp: NotRequired[str]
    """Stamp of the last reply."""


class RoundCancelledEvent(TypedDict):
    """A round was cancelled."""

    type: Literal["round.cancelled"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool of the event."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    job: str
    """Id of the job."""

    roundId: str
    """Id of the round."""

    step: int
    """Training step of the round, from 1. Another round will train this step."""

    mode: CancelMode
    """Treatment of the groups of the round."""

    groups: int
    """Groups that are requeued or dropped."""

    reason: NotRequired[str]
    """Why the round was cancelled."""


class RoundClosedEvent(TypedDict):
    """The trainer has closed a round: its groups are trained."""

    step: int
    """Training step, from 1."""

    type: Literal["round.closed"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool of the event."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    job: str
    """Id of the job."""

    roundId: str
    """Id of the round."""

    trainedGroups: int
    """Groups that were trained."""


class RoundCompletedEvent(TypedDict):
    """A round was completed."""

    step: int
    """Training step, from 1."""

    acceptedGroups: int
    """Groups accepted so far."""

    type: Literal["round.completed"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool of the event."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    job: str
    """Id of the job."""

    roundId: str
    """Id of the round."""

    reason: CompletedReason
    """Why the round was completed."""


class RoundOpenedEvent(TypedDict):
    """A round was opened."""

    takeGroups: int
    """Groups that `round.open` takes from the long-tail queue."""

    step: int
    """Training step, from 1."""

    kind: RoundKind
    """Kind of the round, from its plan."""

    neededGroups: int
    """Groups that the round accepts: the groups that the step trains, and `replacedGroups`."""

    newGroups: int
    """New groups of the plan, and new groups that replace others."""

    type: Literal["round.opened"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool of the event."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    job: str
    """Id of the job."""

    roundId: str
    """Id of the round."""

    policy: TailPolicyName
    """Tail policy of the round."""


class RoundProgressedEvent(TypedDict):
    """A group was accepted."""

    acceptedGroups: int
    """Groups accepted so far."""

    neededGroups: int
    """Groups that the round accepts: the groups that the step trains, and `replacedGroups`."""

    type: Literal["round.progressed"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool of the event."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    job: str
    """Id of the job."""

    roundId: str
    """Id of the round."""

    groupId: str
    """Id of the group."""


class RoundResultsReply(TypedDict):
    """Reply of `round.results`."""

    stamp: str
    """Position of Redis at a reply. Send the latest stamp with the next call that takes a stamp."""

    state: RoundState
    """State of the round."""

    groups: list[GroupResult]
    """The groups, in the order of acceptance."""

    cursor: str
    """Cursor of the next page. `round.close` needs the cursor of the last page."""

    complete: bool
    """The round is completed, and this is the last page."""

    ledger: NotRequired[LedgerSummary]
    """Cost of the policy in this round; only with the last page."""


class RoundResultsRequest(TypedDict):
    """`round.results`: returns accepted groups in the order of acceptance, also while the round is open."""

    job: str
    """Id of a job, chosen by its trainer."""

    stamp: NotRequired[str]
    """Stamp of the last reply."""

    roundId: str
    """Id of a round of a job, chosen by its trainer."""

    cursor: NotRequired[str]
    """Cursor of the previous page; absent: from the beginning. Error GENERATION_CHANGED: Redis has lost
    groups that were read before.
    """

    limit: NotRequired[int]
    """Maximum groups of the page."""

    waitMs: NotRequired[int]
    """Longest wait for the next group or the end of the round, milliseconds."""

    trainerEpoch: NotRequired[str]
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. An epoch
    is opaque, and compared for equality only. Epochs are random instead of counted, because a Redis
    that loses its last changes would give the same number twice.
    """


class RoundSettledEvent(TypedDict):
    """All cut requests of a round are confirmed, and all groups that were not accepted are in the
    long-tail queue.
    """

    type: Literal["round.settled"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool of the event."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    job: str
    """Id of the job."""

    roundId: str
    """Id of the round."""


class RoundStatus(TypedDict):
    """State and progress of a round."""

    roundId: str
    """Id of a round of a job, chosen by its trainer."""

    step: int
    """Training step, from 1."""

    kind: RoundKind
    """Kind of the round, from its plan."""

    state: RoundState
    """State of the round."""

    policy: TailPolicy
    """Tail policy of the round."""

    weightVersion: int
    """Weight version at the opening of the round."""

    trainerEpoch: str
    """Epoch of the trainer. The trainer sends the epoch with every call."""

    neededGroups: int
    """Groups that the round accepts: the groups that the step trains, and `replacedGroups`."""

    newGroups: int
    """New groups of the plan, and new groups that replace others."""

    takenGroups: int
    """Groups taken from the long-tail queue."""

    roundGroups: int
    """Groups of the round so far: taken from the long-tail queue, and submitted."""

    acceptedGroups: int
    """Groups accepted so far."""

    excludedGroups: int
    """Accepted groups that are not trained, because their rewards are equal."""

    replacedGroups: int
    """Excluded groups that the round replaces by other groups."""

    unrewardedGroups: NotRequired[int]
    """Accepted groups without rewards, for which the open round waits; only with `equalRewards` `replace`."""

    failedGroups: int
    """Groups with a request that failed for good."""

    droppedGroups: int
    """Groups that an abort or a timeout of a sample has dropped."""

    shortfallGroups: int
    """Groups that may replace lost groups: max(0, needed - accepted - live). With `accept-fewer` no group
    is needed.
    """

    requestsDone: int
    """Samples finished in this round."""

    requestsCut: int
    """Started requests that were cut."""

    groupsRequeued: int
    """Groups that went to the long-tail queue."""

    pinnedGroups: int
    """Groups with a reserved place that are not accepted yet. The round waits for these groups."""

    heldGroups: int
    """Finished groups without a place in the round."""

    requestsInFlight: NotRequired[int]
    """Requests that workers have; only for `fixed-concurrency`."""

    wastedTokens: int
    """Tokens thrown away."""

    wastedByReason: dict[str, int]
    """Tokens thrown away, by reason."""

    choice: NotRequired[TailChoice]
    """The choice of an adaptive policy for this round, and its reasons."""

    returnedAttempts: dict[str, int]
    """Attempts that returned unfinished without a command, by reason."""

    lastFailures: NotRequired[list[RequestFailure]]
    """The last requests that failed for good, oldest first; at most 5."""

    workerKind: NotRequired[str]
    """Kind of worker that may claim requests of the job; absent for built-in workers."""

    blockedReason: NotRequired[BlockedReason]
    """Why no request of the round is claimed or runs at present."""

    settled: bool
    """True if all cut requests are confirmed and all groups that were not accepted are in the long-tail
    queue.
    """

    traceparent: NotRequired[str]
    """W3C trace context of the round, by which its trace is found; absent without traces."""

    completedReason: NotRequired[CompletedReason]
    """Why the round was completed; absent before."""

    openedAtMs: int
    """When the round was opened, milliseconds since 1970."""

    completedAtMs: NotRequired[int]
    """When the round was completed, milliseconds since 1970; absent before."""

    stamp: NotRequired[str]
    """Stamp of the reply; absent in the reply of `round.takeover`, which has a separate stamp."""


class RoundStatusRequest(TypedDict):
    """`round.status`: state of a round; default: the round that is not closed, or the last one."""

    job: str
    """Id of a job, chosen by its trainer."""

    stamp: NotRequired[str]
    """Stamp of the last reply."""

    roundId: NotRequired[str]
    """Id of a round of a job, chosen by its trainer."""

    trainerEpoch: NotRequired[str]
    """Epoch of the trainer: the call counts for `orphanAfterMs`."""


class RoundSubmittedEvent(TypedDict):
    """Groups were added to a round."""

    type: Literal["round.submitted"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool of the event."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    job: str
    """Id of the job."""

    roundId: str
    """Id of the round."""

    groups: int
    """Groups that were added."""


class RoundSummary(TypedDict):
    """One round of a list."""

    roundId: str
    """Id of a round of a job, chosen by its trainer."""

    step: int
    """Training step, from 1."""

    kind: RoundKind
    """Kind of the round, from its plan."""

    state: RoundState
    """State of the round."""

    neededGroups: int
    """Groups that the round accepts: the groups that the step trains, and `replacedGroups`."""

    acceptedGroups: int
    """Groups accepted so far."""

    openedAtMs: int
    """When the round was opened, milliseconds since 1970."""

    completedAtMs: NotRequired[int]
    """When the round was completed, milliseconds since 1970; absent before."""


class SampleResult(TypedDict):
    """One finished sample."""

    segments: list[Segment]
    """Segments of ended attempts, in order."""

    segmentsFollow: NotRequired[Literal[True]]
    """The segments do not fit this message, so `segments` is empty. Read the segments with
    `request.segments`.
    """

    finishReason: Literal["stop", "length"]
    """Why the response ended: `stop` (the model ended it) or `length` (the budget was used up)."""

    engineFinishReason: NotRequired[str]
    """Finish reason in the words of the engine, e.g. `tool_calls`; absent if the engine named none."""

    requestId: str
    """Id of a request: `<job>/<groupId>/<sampleIndex>`, with `~0` for `~` and `~1` for `/` in job and
    group; unique in the pool.
    """

    sampleIndex: int
    """Index of the sample in its group, from 0."""

    tokenCount: int
    """Tokens of all segments."""

    acceptance: NotRequired[float]
    """How much the tail policy prefers samples of about this length (up to a factor of sqrt(2)), in
    earlier steps: share of the trained samples / share of the started samples. Weight the sample by the
    inverse. Absent if earlier steps have trained no such sample.
    """


class SamplingParameters(TypedDict):
    """Sampling parameters, passed to the engine adapter, which refuses unknown names. Without `seed`,
    engines use their own random numbers. With `seed`, each sample has a separate seed, which
    `sampleSeed` of libs/engines derives from `seed`, job, group, sample index and token count.
    """

    temperature: NotRequired[float]
    """Temperature of the distribution, at least 0."""

    topP: NotRequired[float]
    """Share of the probability that is sampled from, the most probable tokens first."""

    topK: NotRequired[int]
    """Number of most probable tokens that are sampled from."""

    minP: NotRequired[float]
    """Minimum probability of a token, relative to the most probable one."""

    seed: NotRequired[int]
    """Makes samples reproducible."""

    stop: NotRequired[list[str]]
    """Texts that end the response."""

    stopTokenIds: NotRequired[list[int]]
    """Token ids that end the response."""

    minTokens: NotRequired[int]
    """Minimum tokens of the response."""

    repetitionPenalty: NotRequired[float]
    """Penalty factor for repeated tokens; 1 = none."""

    logprobs: NotRequired[bool]
    """Return the log probability of each token."""

    streamInterval: NotRequired[int]
    """Tokens of one event of an engine that takes `stream_interval`: the first token comes at once, and
    what is left at the end. Default: `streamInterval` of the pool; single tokens for a client that
    reads a stream, and for chats that the engine parses.
    """


class SaveItem(TypedDict):
    """One save of `request.save-many`."""

    requestId: str
    """Id of a request: `<job>/<groupId>/<sampleIndex>`, with `~0` for `~` and `~1` for `/` in job and
    group; unique in the pool.
    """

    attempt: str
    """Fencing number of one attempt of a request: `<number>-<random>`. The number counts the attempts, for
    display. Services compare the whole text. A request that was never claimed has the attempt `0`.
    """

    generatedMs: NotRequired[int]
    """Generation time of the attempt so far, milliseconds; for a sample with `timeoutMs`."""

    serverId: NotRequired[str]
    """The server on which the attempt runs; required in the first call of an attempt that may be moved."""

    waiting: NotRequired[bool]
    """True if the engine has sent no token for some seconds: the request waits in the engine, or was
    preempted.
    """

    run: NotRequired[AttemptRun]
    """Times of the attempt so far. An attempt that was bound to its server sends this field once, with its
    first tokens.
    """

    segment: NotRequired[Segment]
    """Tokens of the attempt after its first `savedTokens` tokens."""

    savedTokens: NotRequired[int]
    """Number of tokens that earlier saves of the attempt have. If the partial save has another number, the
    segment is not taken: continue after the number of the reply, or with 0 and all tokens, which
    replace what is saved.
    """


class SaveManyReply(TypedDict):
    """Reply of `request.save-many`."""

    results: list[Union[SaveResult, RefusedSave]]
    """Results in the order of the request."""


class SaveManyRequest(TypedDict):
    """`request.save-many`: `request.save` for several attempts of a worker. Each save has a separate
    result.
    """

    workerId: str
    """Id of a worker, which holds leases and requests, chosen by the worker."""

    workerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. An epoch
    is opaque, and compared for equality only. Epochs are random instead of counted, because a Redis
    that loses its last changes would give the same number twice.
    """

    saves: list[SaveItem]
    """The saves, each of a different attempt."""


class SaveReply(TypedDict):
    """Reply of `request.save`."""

    action: Literal["continue", "abort"]
    """`abort`: end the attempt with `request.fail`, reason `aborted`."""


class SaveRequest(TypedDict):
    """`request.save`: reports the server on which the attempt runs. A call with a segment is a partial
    save.
    """

    requestId: str
    """Id of a request: `<job>/<groupId>/<sampleIndex>`, with `~0` for `~` and `~1` for `/` in job and
    group; unique in the pool.
    """

    attempt: str
    """Fencing number of one attempt of a request: `<number>-<random>`. The number counts the attempts, for
    display. Services compare the whole text. A request that was never claimed has the attempt `0`.
    """

    generatedMs: NotRequired[int]
    """Generation time of the attempt so far, milliseconds; for a sample with `timeoutMs`."""

    serverId: NotRequired[str]
    """The server on which the attempt runs; required in the first call of an attempt that may be moved."""

    waiting: NotRequired[bool]
    """True if the engine has sent no token for some seconds: the request waits in the engine, or was
    preempted.
    """

    run: NotRequired[AttemptRun]
    """Times of the attempt so far. An attempt that was bound to its server sends this field once, with its
    first tokens.
    """

    workerId: str
    """Id of a worker, which holds leases and requests, chosen by the worker."""

    workerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. An epoch
    is opaque, and compared for equality only. Epochs are random instead of counted, because a Redis
    that loses its last changes would give the same number twice.
    """

    segment: NotRequired[Segment]
    """Tokens of the attempt so far."""


class SaveResult(TypedDict):
    """Result of one save."""

    action: Literal["continue", "abort"]
    """`abort`: end the attempt with `request.fail`, reason `aborted`."""

    savedTokens: int
    """Number of tokens of the attempt after which its next segment begins."""


class Segment(TypedDict):
    """Tokens that one attempt generated with one weight version. A sample is a list of segments."""

    attempt: str
    """The attempt that generated the tokens."""

    serverId: str
    """The server that generated the tokens."""

    serverEpoch: str
    """Epoch of the server."""

    weightVersion: int
    """Weight version."""

    tokenCount: int
    """Number of tokens."""

    ref: str
    """Reference of the payload with the tokens: JSON `SegmentPayload`."""

    toWeightVersion: NotRequired[int]
    """Last weight version of the tokens, if the weights changed during the attempt (mode `keep`).
    `weightVersion` is the first version.
    """

    mixedWeightVersion: NotRequired[int]
    """Set by services, with `toWeightVersion`: version of a change in mode `keep` that may have affected
    any token.
    """

    resumedBy: NotRequired[str]
    """`text` if the engine could resume only by text, not by token ids."""


class SegmentPart(TypedDict):
    """Consecutive tokens of a segment that one server generated with one weight version."""

    tokenCount: int
    """Number of tokens."""

    serverId: str
    """Id of a server (one engine with its address), chosen by the caller that registers it."""

    serverEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. An epoch
    is opaque, and compared for equality only. Epochs are random instead of counted, because a Redis
    that loses its last changes would give the same number twice.
    """

    weightVersion: int
    """Weight version of the server when the turn began."""


class SegmentPayload(TypedDict):
    """Contents of the payload of `Segment.ref`."""

    tokenIds: NotRequired[list[int]]
    """The token ids, if the engine returns them."""

    text: NotRequired[str]
    """The text of the tokens."""

    heldText: NotRequired[str]
    """End of the text that may be the beginning of a stop text, if the attempt was cut there. The text of
    the next segment begins with this text, unless the stop text is complete.
    """

    logprobs: NotRequired[list[Union[float, None]]]
    """Log probability of each token, if requested; null where the engine returned none or NaN."""

    lossMask: NotRequired[list[Literal[0, 1]]]
    """1 for each token that the model generated, 0 for each token between two turns, such as the output of
    a tool. Absent: the model generated all tokens.
    """

    parts: NotRequired[list[SegmentPart]]
    """Parts of the segment in order, if the turns of an agent loop ran on different servers or weight
    versions.
    """

    stopReason: NotRequired[Union[str, float]]
    """Stop string or stop token of the last segment, or an unknown finish reason; absent if the engine
    returned none.
    """

    engineFinishReason: NotRequired[str]
    """Finish reason of the last segment in the words of the engine, e.g. `stop`, `length`, `tool_calls`."""

    engineFields: NotRequired[dict[str, Any]]
    """Further fields of the response of the engine, passed on unread, e.g. `routed_experts`, `tool_calls`."""


class ServerChangeReply(TypedDict):
    """Reply of `server.update`."""

    inflight: int
    """Present number of leases."""

    capacity: int
    """Present maximum of leases: below maxInflight in slow start or with adaptive concurrency."""

    drainUntilMs: NotRequired[int]
    """Deadline of a drain, time of Redis, milliseconds."""

    serverId: str
    """Id of a server (one engine with its address), chosen by the caller that registers it."""

    epoch: str
    """Epoch of the server."""

    state: ServerState
    """State of the server."""

    weightVersionTaken: NotRequired[Literal[False]]
    """False if the engine has not reset its prefix cache: the reported version does not count yet, and the
    server takes no leases. The load-balancer asks for the reset again at each probe and each report of
    the version.
    """


class ServerFencedEvent(TypedDict):
    """The epoch of a server was expired, with its leases and sessions."""

    type: Literal["server.fenced"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool of the event."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    serverId: str
    """Id of the server."""

    epoch: str
    """The epoch that has ended."""

    reason: NotRequired[str]
    """Reason given by the caller, if any."""


class ServerHeartbeatReply(TypedDict):
    """Reply of `server.heartbeat`."""

    weightVersionTaken: NotRequired[Literal[False]]
    """False if the engine has not reset its prefix cache: the reported version does not count yet, and the
    server takes no leases. The load-balancer asks for the reset again at each probe and each report of
    the version.
    """

    state: ServerState
    """Present state of the server."""

    requiredWeightVersion: NotRequired[int]
    """Weight version that a server must have to get leases, otherwise it is `quarantined`. Absent: any
    version.
    """


class ServerHeartbeatRequest(TypedDict):
    """`server.heartbeat`: keeps a server ready; for sidecars. The load-balancer also probes endpoints
    itself.
    """

    serverId: str
    """Id of a server (one engine with its address), chosen by the caller that registers it."""

    epoch: str
    """Epoch from the registration."""

    weightVersion: NotRequired[int]
    """Present weight version of the engine; absent = unchanged."""


class ServerHungEvent(TypedDict):
    """Calls of a server got no tokens although the engine answers. The epoch of the server was expired,
    and the calls move.
    """

    type: Literal["server.hung"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool of the event."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    serverId: str
    """Id of the server."""

    epoch: str
    """The epoch that has ended."""

    silentMs: int
    """Time without a token, milliseconds."""


class ServerLoadReport(TypedDict):
    """A load report of an engine."""

    running: int
    """Requests that the engine runs."""

    waiting: int
    """Requests that wait in the engine."""

    kvUse: NotRequired[float]
    """KV cache in use, 0 to 1."""

    kvTokens: NotRequired[int]
    """Tokens that the KV caches of the engine hold."""

    preemptions: NotRequired[int]
    """Preemptions since the start of the engine."""

    ageMs: int
    """Age of the report, milliseconds."""


class ServerPausedEvent(TypedDict):
    """The engine of a server was paused for a change of weights. Engines that cannot be paused have no
    such event.
    """

    type: Literal["server.paused"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool of the event."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    serverId: str
    """Id of the server."""

    syncId: str
    """The change of weights."""


class ServerResumedEvent(TypedDict):
    """The engine of a server was resumed after a change of weights."""

    type: Literal["server.resumed"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool of the event."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    serverId: str
    """Id of the server."""

    syncId: str
    """The change of weights."""


class ServerSigns(TypedDict):
    """Tokens that a worker receives from one server. Tokens show better than a probe that the engine
    works.
    """

    serverId: str
    """Id of the server."""

    epoch: str
    """Epoch of the server, as in the leases of the calls."""

    tokens: int
    """Tokens received since the previous heartbeat."""

    silentMs: int
    """Time that streams of the worker have run since the last token of the server, milliseconds; 0 if
    tokens were received.
    """

    contextTokens: NotRequired[int]
    """Tokens of the longest prompt among the streams without a token. A long prefill explains a silence."""

    observedStreamInterval: NotRequired[int]
    """Mean tokens of an event in the last stream since the previous heartbeat that was long enough to
    tell, if the events did not come as asked for by `stream_interval`. 0: they came as asked. Absent:
    no such stream.
    """


class ServerStatus(TypedDict):
    """One server."""

    serverId: str
    """Id of a server (one engine with its address), chosen by the caller that registers it."""

    epoch: str
    """Epoch of the server."""

    state: ServerState
    """State of the server."""

    endpoint: str
    """Base URL of the engine."""

    dialect: EngineDialect
    """API of the engine."""

    model: NotRequired[str]
    """Model of the engine: the model of its registration, or else the first model that the engine lists."""

    models: NotRequired[list[str]]
    """Models and adapters that the engine lists; a last `*` stands for more. Absent before the list is
    known.
    """

    inflight: int
    """Present number of leases."""

    maxInflight: int
    """Maximum leases at the same time."""

    weight: float
    """Relative capacity: load counts as leases / weight."""

    weightVersion: int
    """Weight version of the server."""

    heartbeatAgeMs: int
    """Time since the engine answered a probe or sent a heartbeat, milliseconds."""

    capacity: int
    """Present maximum of leases: below maxInflight in slow start or with adaptive concurrency."""

    drainUntilMs: NotRequired[int]
    """Deadline of a drain, time of Redis, milliseconds."""

    busyUntilMs: NotRequired[int]
    """Time of Redis until which the server takes no new leases, milliseconds, because the engine was busy
    or calls failed.
    """

    hung: NotRequired[Literal[True]]
    """Calls of the server got no tokens although the engine answers. The server gets one call at a time
    until a call gets a token.
    """

    probe: NotRequired[Literal[False]]
    """False if the server is not probed, otherwise absent."""

    labels: NotRequired[dict[str, str]]
    """Labels of the server, if it has any."""

    capabilities: NotRequired[EngineCapabilities]
    """Capabilities of the engine; absent before the first probe."""

    observedStreamInterval: NotRequired[int]
    """Mean tokens of an event that callers of the server have received, of an engine that takes
    `stream_interval` (`capabilities`) and sends less than half or more than twice of what it is asked
    for: 1 if it ignores the field. Absent while events come as asked.
    """

    load: NotRequired[ServerLoadReport]
    """Last load report of the engine; absent if the engine reports none."""

    engineStartedAtSeconds: NotRequired[float]
    """Start time that the engine reports, by its clock, seconds. A later time shows a restart."""

    engineWeightVersion: NotRequired[int]
    """Weight version that the engine reports; -1: no number. `weightVersion` follows each change."""

    unconfirmedWeightVersion: NotRequired[int]
    """Weight version before the failure of the server, which becomes `weightVersion` again if the engine
    has not restarted.
    """

    listedAs: NotRequired[str]
    """Identity of the engine in the list of discovery: the uid of its pod, or its base URL; absent if not
    listed.
    """

    withheld: NotRequired[Literal[True]]
    """The server is `cordoned` because discovery does not list its engine as ready."""

    weightsUnknown: NotRequired[Literal[True]]
    """The weights of the server are unknown, because a change of weights ended at its deadline before the
    server was reported, or a load failed. The server takes no leases until its weight version is
    reported.
    """

    pendingWeightVersion: NotRequired[int]
    """Weight version that does not count yet, because the engine has no salts and has not reset its prefix
    cache. The server takes no leases. The load-balancer asks for the reset at each probe while no
    request runs on the server.
    """


class ServerTotals(TypedDict):
    """State and leases of one server."""

    inflight: int
    """Present number of leases."""

    maxInflight: int
    """Maximum leases at the same time."""

    serverId: str
    """Id of a server (one engine with its address), chosen by the caller that registers it."""

    epoch: str
    """Epoch of the server."""

    state: ServerState
    """State of the server."""


class SessionStatus(TypedDict):
    """One session."""

    sessionId: str
    """Id of the session."""

    serverId: NotRequired[str]
    """Server of the session; absent until the next lease."""

    serverEpoch: NotRequired[str]
    """Epoch of the server."""

    leases: int
    """Live leases of the session."""

    dpRank: NotRequired[int]
    """Data-parallel rank of the session on this server."""

    contextTokens: NotRequired[int]
    """Tokens of its context after its last call; only with `sessionAdmission`, as all fields below."""

    parentSessionId: NotRequired[str]
    """Session that has started it as a subagent."""

    paused: NotRequired[bool]
    """True while its context counts on no server; its next turn is admitted again."""

    waiting: NotRequired[bool]
    """True while it is paused and its next turn waits to be admitted."""


class SetLogLevelRequest(TypedDict):
    """`service.log-level`: sets the level of the logs of running services. Each named replica replies."""

    app: NotRequired[str]
    """Name of a service, for example `worker`. Default: all services."""

    replicaId: NotRequired[str]
    """Id of one replica, as in the replies. Default: all replicas."""

    level: LogLevel
    """Lowest level of the lines that are written."""


class SnapshotJobReply(TypedDict):
    """Reply of `job.snapshot`."""

    tag: str
    """Name of the snapshot."""

    step: int
    """Steps trained."""

    groups: int
    """Groups of the long-tail queue in the snapshot."""

    requests: int
    """Requests of the groups of the snapshot."""

    stamp: str
    """Position of Redis at a reply. Send the latest stamp with the next call that takes a stamp."""

    state: Literal["saving", "complete"]
    """`saving`: not finished; send the same body again."""


class SnapshotJobRequest(TypedDict):
    """`job.snapshot`: saves a snapshot of a job between two rounds: the long-tail queue with references of
    all tokens, the step and the counters.
    """

    job: str
    """Id of a job, chosen by its trainer."""

    stamp: NotRequired[str]
    """Stamp of the last reply."""

    trainerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. An epoch
    is opaque, and compared for equality only. Epochs are random instead of counted, because a Redis
    that loses its last changes would give the same number twice.
    """

    tag: str
    """Name of the snapshot, for example the step. A tag of a snapshot with another state is refused."""

    keep: NotRequired[int]
    """Number of snapshots that the job keeps, newest first, with this one. Groups in these snapshots keep
    their payloads.
    """


class SnapshotServer(TypedDict):
    """State of a server at the time of the choice."""

    serverId: str
    """Id of a server (one engine with its address), chosen by the caller that registers it."""

    weight: float
    """Relative capacity: load counts as leases / weight."""

    weightVersion: int
    """Weight version of the server."""

    labels: NotRequired[dict[str, str]]
    """Labels of the server, if it has any."""

    leases: int
    """Leases of the server."""

    hasRoom: bool
    """The server has room for one more lease."""

    chosen: int
    """Sequence of the last lease for which the server was chosen, modulo 2^32; 0 = never."""

    tokens: NotRequired[int]
    """Context tokens of the leases (at least 256 each) and uncached tokens that the engine reports; only
    for `least-tokens`.
    """

    kvShare: NotRequired[int]
    """Thousandths of the KV memory that contexts of sessions and part of their expected growth use; only
    for `least-kv`.
    """

    sessions: NotRequired[int]
    """Number of bound sessions and of leases without a session; only for `least-sessions`."""

    turn: NotRequired[int]
    """Next turn of the server; only for `round-robin`."""

    lacks: NotRequired[list[EngineFeature]]
    """Capabilities that the engine is known to lack."""

    lacksModel: NotRequired[Literal[True]]
    """The engine does not list the model that the acquire names."""

    kvUse: NotRequired[float]
    """Reported KV use, 0 to 1."""

    groupLeases: NotRequired[int]
    """Leases of the acquire's group on this server."""


class StatPayloadReply(TypedDict):
    """Reply of `payload.stat`."""

    bytes: int
    """Size of the whole payload, bytes."""

    chunkCount: int
    """Chunks of the whole payload."""

    storedAtMs: int
    """Time of completion, milliseconds since 1970."""


class StatPayloadRequest(TypedDict):
    """`payload.stat`: size of a payload."""

    ref: str
    """Reference of the payload."""


class SubmitGroupsReply(TypedDict):
    """Reply of `round.submit`."""

    stamp: str
    """Position of Redis at a reply. Send the latest stamp with the next call that takes a stamp."""

    roundGroups: int
    """Groups of the round so far, including groups from the queue."""

    added: int
    """Groups that were added."""

    repeated: int
    """Groups that were already in the round."""


class SubmitGroupsRequest(TypedDict):
    """`round.submit`: submits one page of groups; a known group with the same contents is skipped."""

    job: str
    """Id of a job, chosen by its trainer."""

    stamp: NotRequired[str]
    """Stamp of the last reply."""

    trainerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. An epoch
    is opaque, and compared for equality only. Epochs are random instead of counted, because a Redis
    that loses its last changes would give the same number twice.
    """

    roundId: str
    """Id of a round of a job, chosen by its trainer."""

    groups: list[GroupSubmission]
    """Groups to add to the round."""


class SyncWorkerReply(TypedDict):
    """Reply of `worker.sync`."""

    cursor: NotRequired[str]
    """Cursor of the next page; absent on the last page."""

    items: list[HeldItem]
    """The leases or attempts of the page."""


class SyncWorkerRequest(TypedDict):
    """`worker.sync`: lists the leases or attempts of this epoch in Redis, page by page."""

    workerId: str
    """Id of a worker, which holds leases and requests, chosen by the worker."""

    workerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. An epoch
    is opaque, and compared for equality only. Epochs are random instead of counted, because a Redis
    that loses its last changes would give the same number twice.
    """

    kind: Literal["leases", "attempts"]
    """Kind of the items to list."""

    cursor: NotRequired[str]
    """Cursor of the previous page."""


class TailChoiceDomains(TypedDict):
    """Part of another type."""

    overProvision: float
    """Launched / needed groups of this domain."""

    why: OverProvisionWhy
    """How the value was computed."""


class TailChoice(TypedDict):
    """The choice of the policy for a round, and its reasons."""

    overProvision: float
    """Launched / needed groups over all domains."""

    domains: NotRequired[dict[str, TailChoiceDomains]]
    """Over-provision by domain ('' = no domain); only if adaptive."""

    dripGroups: NotRequired[int]
    """Groups taken from the long-tail queue; only for `drip`."""

    drip: NotRequired[DripWhy]
    """How an adaptive `dripGroups` was computed; only if adaptive."""

    auto: NotRequired[AutoChoice]
    """Choice of `auto`; absent under the other policies."""


class TailPolicy(TypedDict):
    """The tail policy of a round. libs/policies/src/tail/README.md describes the valid combinations of
    fields.
    """

    name: TailPolicyName
    """How the round treats its slowest groups."""

    overProvision: NotRequired[float]
    """Launched groups / needed groups, at least 1. Required, except for `wait` and `auto`."""

    overProvisionMode: NotRequired[ChoiceMode]
    """`adaptive`: computed from the lengths of the last steps, by domain, starting at `overProvision`."""

    sampleOverProvision: NotRequired[float]
    """Launched samples / samples of a group, at least 1. The first samples to finish are trained, the
    others are dropped.
    """

    onCut: NotRequired[CutSemantics]
    """Whether the tokens of cut samples are kept. Default: `discard` for `regenerate`, `keep` for all
    other policies.
    """

    dripGroups: NotRequired[int]
    """For `drip`: groups that each round takes from the long-tail queue; default: as many as the round
    launches beyond its need.
    """

    dripMode: NotRequired[ChoiceMode]
    """For `drip`. `adaptive`: computed from the pace of taken and new groups (TailSieve), starting at
    `dripGroups` or 1.
    """

    dripReserved: NotRequired[bool]
    """For `drip`: true reserves a place for each taken group, so that the group is not cut again. Default:
    true with an adaptive `dripMode` or with `domainQuotas`.
    """

    concurrency: NotRequired[int]
    """For `fixed-concurrency`: maximum requests of the round that workers have at the same time."""

    domainQuotas: NotRequired[dict[str, int]]
    """Groups of each named domain in a whole step. All other domains share the rest."""

    fleetKvTokens: NotRequired[int]
    """Tokens of this job that fit into the KV caches of the engines; limits an adaptive over-provision.
    Default: the sum over the reports of all engines of the pool; no limit if one engine reports
    nothing.
    """

    dispatchOrder: NotRequired[DispatchOrder]
    """Order in which requests of new groups are claimed."""

    maxCuts: NotRequired[int]
    """Maximum cuts of a group. The next round takes the group and does not cut it."""

    maxAgeSteps: NotRequired[int]
    """Maximum steps after the first step of a group. The last round takes the group and does not cut it."""

    maxVersionSpan: NotRequired[int]
    """Maximum weight versions between the oldest token of a group and the round that ends it. Under
    `auto`: 2.
    """

    maxOffPolicyShare: NotRequired[float]
    """Maximum share: tokens of groups from earlier rounds / expected tokens of the batch. `auto` keeps
    this bound by its choice, without throwing tokens away.
    """

    maxLengthBias: NotRequired[float]
    """For `auto`: maximum difference between the mean lengths of trained and of started samples, as a
    share. Absent: `auto` chooses no policy that throws tokens of cut samples away, so the lengths are
    not biased.
    """

    maxWaste: NotRequired[float]
    """For `auto`: maximum share: tokens that the tail policy throws away / generated tokens. Tokens of
    failed and aborted samples and of groups with equal rewards do not count.
    """

    maxLongtailShare: NotRequired[float]
    """Maximum share: groups of the long-tail queue / groups of the batch, while there are new groups."""

    deadlineMs: NotRequired[int]
    """Time after which the round completes with the groups accepted so far, milliseconds; absent = never.
    Overrides all bounds.
    """

    shortfall: NotRequired[Literal["replace", "accept-fewer"]]
    """If accepted + live < needed, the round waits for other groups (`replace`), or accepts fewer groups."""

    equalRewards: NotRequired[EqualRewards]
    """Treatment of groups with equal rewards of several samples (`round.reward`), from which GRPO learns
    nothing. `keep`: such groups are trained. `exclude`: such groups are not trained, so the step trains
    fewer groups. `replace`: another group takes the place of each such group (dynamic sampling of
    DAPO), and the round completes when all rewards are reported; a group is trained if no other group
    is left.
    """

    maxReplacedGroups: NotRequired[int]
    """For `equalRewards` `replace`: maximum groups that one round replaces. Further groups with equal
    rewards are trained. Default: nine for each group that the step trains.
    """

    alarms: NotRequired[LedgerBounds]
    """Bounds of the ledger. An alarm is raised when a value is near or over its bound. Defaults:
    `offPolicyShare` = `maxOffPolicyShare`, `versionSpan` = `maxVersionSpan`, `cutsPerGroup` =
    `maxCuts`; under `auto` also `lengthBias` = `maxLengthBias` and `wasteShare` = `maxWaste`.
    `maxWaste` counts only the waste of the tail policy; a given `wasteShare` counts all waste.
    """

    maxFailures: NotRequired[int]
    """Number of different servers that may fail one request without a new token before the request fails
    for good. A restarted server counts as a different server. No failure counts while more than half of
    the servers fail other prompts too. The same servers may fail the request again for
    REQUEST_FAILURE_DEADLINE_MS of the coordinator.
    """

    maxReturns: NotRequired[int]
    """Number of attempts of one request that may return unfinished for other reasons (for example an
    expired worker, no server, a full payload store) before the request fails for good. Cuts, moves and
    changes of weights do not count.
    """


class TakeoverRoundReply(TypedDict):
    """Reply of `round.takeover`."""

    stamp: str
    """Position of Redis at a reply. Send the latest stamp with the next call that takes a stamp."""

    trainerEpoch: str
    """Epoch of the trainer of the job. The trainer sends the epoch with every later call."""

    stepsTrained: int
    """Steps trained (rounds closed)."""

    submittedGroups: int
    """Groups ever submitted: the trainer's position in its data."""

    round: NotRequired[RoundStatus]
    """The round that is not closed, if any."""


class TakeoverRoundRequest(TypedDict):
    """`round.takeover`: starts a new trainer of the job and fences the previous one."""

    job: str
    """Id of a job, chosen by its trainer."""

    takeoverId: str
    """Id of the takeover, for idempotency: a repeat gets the same epoch."""


class TrainedGroup(TypedDict):
    """A trained group."""

    groupId: str
    """Id of a group, unique in its job, chosen by the trainer."""

    samples: int
    """Number of its trained samples."""


class TrainedPart(TypedDict):
    """Length and truncation of a part of the trained samples."""

    samples: int
    """Number of samples."""

    meanTokens: float
    """Mean length, tokens."""

    capShare: float
    """Share of the samples that ended at the token budget."""


class TransferLeaseRequest(TypedDict):
    """`lb.transfer`: moves a live lease and its session to another server, atomically. The lease keeps its
    id and holder. The caller ends the call on the old server. The reply is the reply of an acquire,
    with the branch `transferred`. After an error nothing is changed. Errors: LEASE_NOT_FOUND, FENCED,
    SERVER_NOT_FOUND, SERVER_NOT_READY, SERVER_FULL, SERVER_UNSUITABLE, POOL_PAUSED, VALIDATION_FAILED
    (the lease is already on this server).
    """

    workerId: str
    """Id of a worker, which holds leases and requests, chosen by the worker."""

    workerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. An epoch
    is opaque, and compared for equality only. Epochs are random instead of counted, because a Redis
    that loses its last changes would give the same number twice.
    """

    transferId: str
    """Id of the transfer, for idempotency: a repeat gets the first answer for 120 s."""

    leaseId: NotRequired[str]
    """The lease; exactly one of leaseId and acquireId."""

    acquireId: NotRequired[str]
    """The acquire that the lease was granted to."""

    targetServerId: str
    """The server that gets the lease."""

    targetEpoch: NotRequired[str]
    """Required epoch of the target."""

    reason: NotRequired[str]
    """Text for the log."""


class UncordonServerRequest(TypedDict):
    """`server.uncordon`: ends a cordon or a drain."""

    serverId: str
    """Id of a server (one engine with its address), chosen by the caller that registers it."""


class UnreadPayload(TypedDict):
    """A payload that was not read. REPLY_FULL: read it with fewer others, or by `payload.get`."""

    error: WireError
    """The field `error` of a reply."""


class UpdateServerRequest(TypedDict):
    """`server.update`: changes the given fields of a server. Leases, sessions and epoch stay. Errors:
    SERVER_NOT_FOUND.
    """

    serverId: str
    """Id of a server (one engine with its address), chosen by the caller that registers it."""

    maxInflight: NotRequired[int]
    """Maximum leases. A maximum below the present number only stops new leases."""

    weight: NotRequired[float]
    """Relative capacity: load counts as leases / weight."""

    weightVersion: NotRequired[int]
    """Present weight version of the engine."""

    weightsUnknown: NotRequired[Literal[True]]
    """A load has failed, so the engine may have a part of the new weights. The server takes no leases
    until its weights are reported. Not with `weightVersion`.
    """

    labels: NotRequired[dict[str, str]]
    """The new labels, which replace all old ones."""


class WantedMove(TypedDict):
    """A requested move, with either `requestId` or `leaseId`."""

    targetServerId: str
    """Id of the target server."""

    targetEpoch: NotRequired[str]
    """Required epoch of the target."""

    requestId: NotRequired[str]
    """The request to move."""

    leaseId: NotRequired[str]
    """The lease of a caller that only routes."""

    attempt: NotRequired[str]
    """Required attempt."""


class WeightServer(TypedDict):
    """One server during a change of weights."""

    weightVersion: int
    """Weight version of the server."""

    inflight: int
    """Present number of leases."""

    serverId: str
    """Id of a server (one engine with its address), chosen by the caller that registers it."""

    epoch: str
    """Epoch of the server."""

    state: ServerState
    """State of the server."""

    quiesced: bool
    """True if no request is in flight on the server."""

    paused: bool
    """True if the engine is paused for a change of weights; false for an engine that cannot be paused."""

    confirmed: bool
    """True if the server has the version of the change or, without a change, of the pool."""

    weightsUnknown: NotRequired[Literal[True]]
    """The weights of the server are unknown, so it takes no leases until its version is reported."""


class WeightSync(TypedDict):
    """One change of the weights of a pool."""

    syncId: str
    """The change of weights."""

    job: NotRequired[str]
    """Job of the change."""

    version: int
    """Version of the new weights."""

    mode: WeightSyncMode
    """Treatment of running requests."""

    fromVersion: int
    """Previous version of the pool; 0 before the first change."""

    state: Literal["begun", "committed", "rolled-back"]
    """State of the change."""

    startedAtMs: int
    """Start of the change, time of Redis, milliseconds."""

    deadlineAtMs: int
    """Deadline of the change, time of Redis, milliseconds."""

    endedAtMs: NotRequired[int]
    """End of the change, time of Redis, milliseconds; absent before."""

    reason: NotRequired[str]
    """Why the change ended: `asked` or `deadline`."""

    running: int
    """Leases in flight; 0 = quiesced."""

    servers: int
    """Servers that take leases now, or when the pool resumes."""

    confirmedServers: int
    """Number of `servers` that report the version of the change."""


class WeightSyncReply(TypedDict):
    """Reply of `weights.begin`, `weights.commit` and `weights.rollback`."""

    stamp: str
    """Position of Redis at a reply. Send the latest stamp with the next call that takes a stamp."""

    syncId: str
    """The change of weights."""

    job: NotRequired[str]
    """Job of the change."""

    version: int
    """Version of the new weights."""

    mode: WeightSyncMode
    """Treatment of running requests."""

    fromVersion: int
    """Previous version of the pool; 0 before the first change."""

    state: Literal["begun", "committed", "rolled-back"]
    """State of the change."""

    startedAtMs: int
    """Start of the change, time of Redis, milliseconds."""

    deadlineAtMs: int
    """Deadline of the change, time of Redis, milliseconds."""

    endedAtMs: NotRequired[int]
    """End of the change, time of Redis, milliseconds; absent before."""

    reason: NotRequired[str]
    """Why the change ended: `asked` or `deadline`."""

    running: int
    """Leases in flight; 0 = quiesced."""

    servers: int
    """Servers that take leases now, or when the pool resumes."""

    confirmedServers: int
    """Number of `servers` that report the version of the change."""


class WeightsBegunEvent(TypedDict):
    """A change of weights has started."""

    syncId: str
    """The change of weights."""

    version: int
    """Version of the new weights."""

    mode: WeightSyncMode
    """Treatment of running requests."""

    fromVersion: int
    """Previous version of the pool; 0 before the first change."""

    type: Literal["weights.begun"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool of the event."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""


class WeightsCommittedEvent(TypedDict):
    """The pool resumes with new weights."""

    syncId: str
    """The change of weights."""

    version: int
    """Version of the new weights."""

    type: Literal["weights.committed"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool of the event."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    reason: str
    """Why the change ended: `asked` or `deadline`."""


class WeightsRolledBackEvent(TypedDict):
    """The pool resumes with its previous weights."""

    syncId: str
    """The change of weights."""

    version: int
    """Version of the new weights."""

    type: Literal["weights.rolled-back"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool of the event."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    reason: str
    """Why the change ended: `asked` or `deadline`."""


class WeightsStatusReply(TypedDict):
    """The weights of a pool."""

    cursor: NotRequired[str]
    """Cursor of the next page; absent on the last page."""

    stamp: str
    """Position of Redis at a reply. Send the latest stamp with the next call that takes a stamp."""

    version: NotRequired[int]
    """Last committed version; absent before the first commit."""

    sync: NotRequired[WeightSync]
    """The requested change, or the present change; absent if there is none."""

    servers: list[WeightServer]
    """One page of servers; empty without `cursor`."""


class WeightsStatusRequest(TypedDict):
    """`weights.status`: state of the present change, or of `syncId`; with `cursor` also one page of
    servers.
    """

    syncId: NotRequired[str]
    """Id of a change that has ended less than an hour ago."""

    cursor: NotRequired[str]
    """`0` for the first page, then the cursor of the previous page."""

    limit: NotRequired[int]
    """Maximum servers of the page."""

    stamp: NotRequired[str]
    """Stamp of the last reply."""


class WireError(TypedDict):
    """The field `error` of a reply."""

    code: ErrorCode
    """Stable name of the error."""

    message: str
    """Explanation of this error, as text."""

    retryable: bool
    """The same body may succeed later."""

    field: NotRequired[str]
    """Path of the first wrong field, e.g. `groups.3.groupId`."""

    retryAfterMs: NotRequired[int]
    """Pause before the same body may be sent again, milliseconds."""

    details: NotRequired[Any]
    """More about this error, depending on its code."""


class WorkerHeartbeatReply(TypedDict):
    """Counts in Redis. After a lasting difference, page through `worker.sync`."""

    ttlMs: int
    """Time without a heartbeat after which the epoch expires, milliseconds."""

    serverTimeMs: int
    """Time of Redis, milliseconds since 1970."""

    leaseCount: int
    """Leases of the worker in Redis."""

    leaseDigest: int
    """Sum of the sequences of the leaseIds, modulo 2^40."""

    attemptCount: int
    """Attempts of the worker in Redis."""

    generation: str
    """Pool generation. Another generation shows that Redis was restarted or set back and may have lost
    leases: then page through `worker.sync`, even if the counts agree.
    """

    syncAsked: NotRequired[bool]
    """Page through `worker.sync` now, even if the counts agree, because a server is being reconciled
    (`server.reconcile`).
    """


class WorkerHeartbeatRequest(TypedDict):
    """`worker.heartbeat`: renews all leases and attempts of the epoch. FENCED if the epoch has expired."""

    workerId: str
    """Id of a worker, which holds leases and requests, chosen by the worker."""

    workerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. An epoch
    is opaque, and compared for equality only. Epochs are random instead of counted, because a Redis
    that loses its last changes would give the same number twice.
    """

    leaseCount: int
    """Number of leases that the worker holds."""

    leaseDigest: int
    """Sum of the sequences of the leaseIds, modulo 2^40."""

    attemptCount: int
    """Number of attempts (claimed or running requests) of the worker."""

    servers: NotRequired[list[ServerSigns]]
    """Servers on which the worker has streams. If there are too many, each heartbeat has different
    servers.
    """


class WorkerStatus(TypedDict):
    """One live worker epoch."""

    ttlMs: int
    """Time without a heartbeat after which the epoch expires, milliseconds."""

    workerId: str
    """Id of a worker, which holds leases and requests, chosen by the worker."""

    workerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. An epoch
    is opaque, and compared for equality only. Epochs are random instead of counted, because a Redis
    that loses its last changes would give the same number twice.
    """

    heartbeatAgeMs: int
    """Time since the registration or the last heartbeat, milliseconds; above `ttlMs` the epoch expires."""

    ageMs: int
    """Time since the registration, milliseconds."""

    leases: int
    """Leases of the worker."""

    attempts: int
    """Requests of the worker: claimed, running or cutting."""

    syncAsked: NotRequired[bool]
    """`server.reconcile` has asked the worker for a `worker.sync`, which has not started."""


AbortScope = Literal["sample", "group"]
AutoBound = Literal["maxOffPolicyShare", "maxVersionSpan", "maxLengthBias", "maxWaste"]
AutoReason = Literal["unknown", "best", "step", "predicted", "measured", "late"]
CancelMode = Literal["requeue", "drop"]
ChatMessage = dict[str, Any]
ChoiceMode = Literal["fixed", "adaptive"]
CompletedReason = Literal["accepted", "deadline", "accepted-fewer"]
ContentPart = dict[str, Any]
CutSemantics = Literal["keep", "discard"]
DecisionBranch = Literal["sticky-hit", "sticky-broken", "least-loaded", "tie", "round-robin", "hash", "group-spread", "group-affinity", "bound", "bound-unavailable", "transferred", "resumed", "admitted", "waited", "repeated"]
DispatchOrder = Literal["arrival", "longest-first", "probe-first"]
EngineDialect = Literal["vllm", "sglang", "openai"]
EngineFeature = Literal["tokenIdsIn", "tokenIdsOut", "logprobs", "abortById", "abortOnDisconnect", "loadReport", "prefixCacheReset", "tokenize"]
EqualRewards = Literal["keep", "exclude", "replace"]
ErrorCode = Literal["MALFORMED_JSON", "VALIDATION_FAILED", "PAYLOAD_TOO_LARGE", "NOT_FOUND_SUBJECT", "UNAUTHENTICATED", "TOKEN_NOT_FOUND", "FORBIDDEN", "ROUTE_NOT_FOUND", "METHOD_NOT_ALLOWED", "UNSUPPORTED_MEDIA_TYPE", "IDEMPOTENCY_KEY_REUSED", "REQUEST_IN_PROGRESS", "OUTCOME_UNKNOWN", "RATE_LIMITED", "REPLY_FULL", "OVERLOADED", "SHUTTING_DOWN", "UNAVAILABLE", "STORE_FULL", "SCHEMA_UNSUPPORTED", "TIMEOUT", "INTERNAL", "FENCED", "GENERATION_CHANGED", "NO_SERVER_AVAILABLE", "SERVERS_FULL", "WAIT_TIMEOUT", "QUEUE_FULL", "POOL_NOT_FOUND", "POOL_PAUSED", "NO_CAPABLE_SERVER", "SESSION_CONFLICT", "SESSION_NOT_FOUND", "SERVER_NOT_FOUND", "REPLICA_NOT_FOUND", "WORKER_NOT_FOUND", "LEASE_NOT_FOUND", "SERVER_ID_TAKEN", "SERVER_NOT_READY", "SERVER_FULL", "SERVER_UNSUITABLE", "RELEASED", "ABORTED", "VERSION_NOT_FOUND", "VERSION_MISMATCH", "JOB_NOT_FOUND", "JOB_IN_USE", "POOL_IN_USE", "ROUND_NOT_FOUND", "ROUND_CONFLICT", "ROUND_CLOSED", "ROUND_CANCELLED", "ROUND_NOT_OPEN", "ROUND_NOT_COMPLETED", "ROUND_MISMATCH", "ROUND_SETTLING", "SNAPSHOT_EXISTS", "SNAPSHOT_NOT_FOUND", "RESTORE_UNFINISHED", "PLAN_STALE", "DUPLICATE_GROUP", "GROUP_NOT_FOUND", "REQUEST_NOT_FOUND", "WEIGHT_SYNC_CONFLICT", "WEIGHT_SYNC_NOT_FOUND", "WEIGHT_SYNC_ENDED", "WEIGHT_VERSION_MISMATCH", "WEIGHT_VERSION_STALE", "WEIGHTS_NOT_QUIESCED", "PLAN_NOT_FOUND", "PAYLOAD_NOT_FOUND", "PAYLOAD_FOREIGN", "PAYLOAD_EXISTS", "PAYLOAD_INCOMPLETE", "PAYLOAD_STORE_FULL", "ENGINE_UNREACHABLE", "ENGINE_BUSY", "ENGINE_PROTOCOL", "ENGINE_ERROR", "ENGINE_STALLED", "CONTEXT_TOO_LONG", "MODEL_NOT_FOUND", "ENGINE_REJECTED"]
FailReason = Literal["engine-error", "engine-rejected", "engine-abort", "no-server", "payload", "aborted", "shutdown", "unclaimed", "payload-full", "timeout"]
GroupPlacement = Literal["group-spread", "group-affinity", "auto"]
LogLevel = Literal["fatal", "error", "warn", "info", "debug", "trace"]
MoveMeans = Literal["bind", "recompute", "transfer"]
MoveRefusal = Literal["unknown-request", "unknown-lease", "victim-changed", "ending", "same-server", "moved-too-often", "server-not-found", "server-changed", "server-full", "server-pending", "server-suspect", "server-failed", "server-draining", "server-cordoned", "server-quarantined"]
MoveState = Literal["planned", "sent", "moved", "completed-first", "superseded", "expired", "refused"]
NoMoveReason = Literal["balanced", "no-room", "held-back", "not-worth-it"]
PauseMode = Literal["abort", "wait", "keep"]
PoolEvent = Union["RoundOpenedEvent", "RoundSubmittedEvent", "RoundProgressedEvent", "RoundCompletedEvent", "RoundSettledEvent", "RoundClosedEvent", "RoundCancelledEvent", "RequestFinishedEvent", "AttemptEndedEvent", "RequestAbortedEvent", "RequestLostEvent", "GroupFailedEvent", "GroupDroppedEvent", "LongtailRequeuedEvent", "JobTakenOverEvent", "JobReconciledEvent", "JobSnapshottedEvent", "JobRestoredEvent", "WeightsBegunEvent", "WeightsCommittedEvent", "WeightsRolledBackEvent", "ServerPausedEvent", "ServerResumedEvent", "ServerFencedEvent", "ServerHungEvent", "PoolSetBackEvent"]
PoolSettingName = Literal["policy", "affinityBreakMargin", "affinityBreakMaxContextTokens", "groupPlacement", "groupAffinityCap", "groupSpreadBelowTokens", "groupSpreadAboveKvUse", "sessionIdleMs", "maxSessions", "sessionAdmission", "sessionKvTokens", "pausedSessionWaitMs", "decisionSampleEvery", "poolMaxInflight", "requiredWeightVersion", "slowStartMs", "slowStartFraction", "breakerFailures", "breakerOpenMs", "adaptiveConcurrency", "adaptIntervalMs", "streamInterval"]
RebalancePolicy = Literal["tier-cost", "tier-min"]
ReleaseOutcome = Literal["finished", "failed", "rejected", "aborted", "unclaimed", "busy"]
ReturnReason = Union["FailReason", Literal["worker-lost"], Literal["internal"]]
RewardOutcome = Literal["kept", "excluded", "replaced"]
RoundKind = Literal["short", "long"]
RoundState = Literal["opening", "open", "completed", "closed", "cancelled"]
RoutingPolicy = Literal["least-inflight", "least-tokens", "least-sessions", "least-kv", "round-robin", "consistent-hash", "random", "power-of-two"]
ServerState = Literal["pending", "ready", "suspect", "failed", "draining", "removed", "quarantined", "cordoned"]
SessionAdmission = Literal["off", "kv"]
TailPolicyName = Literal["wait", "regenerate", "resume", "drip", "fixed-concurrency", "auto"]
WeightSyncMode = Literal["abort", "wait", "keep"]


class Call(Protocol):
    """Calls an operation and returns its reply."""

    @overload
    async def __call__(
        self, operation: Literal["lb.acquire"], body: AcquireRequest, *, deadline: float = ...
    ) -> LeaseGrant: ...

    @overload
    async def __call__(
        self, operation: Literal["lb.acquire-many"], body: AcquireManyRequest, *, deadline: float = ...
    ) -> AcquireManyReply: ...

    @overload
    async def __call__(
        self, operation: Literal["lb.release"], body: ReleaseRequest, *, deadline: float = ...
    ) -> ReleaseReply: ...

    @overload
    async def __call__(
        self, operation: Literal["lb.release-many"], body: ReleaseManyRequest, *, deadline: float = ...
    ) -> ReleaseManyReply: ...

    @overload
    async def __call__(
        self, operation: Literal["lb.transfer"], body: TransferLeaseRequest, *, deadline: float = ...
    ) -> LeaseGrant: ...

    @overload
    async def __call__(
        self, operation: Literal["lb.status"], body: LoadBalancerStatusRequest, *, deadline: float = ...
    ) -> LoadBalancerStatus: ...

    @overload
    async def __call__(
        self, operation: Literal["lb.finish-session"], body: FinishSessionRequest, *, deadline: float = ...
    ) -> FinishSessionReply: ...

    @overload
    async def __call__(
        self, operation: Literal["lb.cancel"], body: CancelAcquireRequest, *, deadline: float = ...
    ) -> CancelAcquireReply: ...

    @overload
    async def __call__(
        self, operation: Literal["lb.clear-sessions"], body: ClearSessionsRequest, *, deadline: float = ...
    ) -> ClearSessionsReply: ...

    @overload
    async def __call__(
        self, operation: Literal["lb.decisions"], body: DecisionsRequest, *, deadline: float = ...
    ) -> DecisionsReply: ...

    @overload
    async def __call__(
        self, operation: Literal["pool.configure"], body: ConfigurePoolRequest, *, deadline: float = ...
    ) -> PoolSettingsReply: ...

    @overload
    async def __call__(
        self, operation: Literal["pool.settings"], body: PoolSettingsRequest, *, deadline: float = ...
    ) -> PoolSettingsReply: ...

    @overload
    async def __call__(
        self, operation: Literal["pool.history"], body: PoolHistoryRequest, *, deadline: float = ...
    ) -> PoolHistoryReply: ...

    @overload
    async def __call__(
        self, operation: Literal["pool.rollback"], body: RollbackPoolRequest, *, deadline: float = ...
    ) -> PoolSettingsReply: ...

    @overload
    async def __call__(
        self, operation: Literal["pool.find"], body: FindPoolRequest, *, deadline: float = ...
    ) -> FindPoolReply: ...

    @overload
    async def __call__(
        self, operation: Literal["pool.pause"], body: PausePoolRequest, *, deadline: float = ...
    ) -> PausePoolReply: ...

    @overload
    async def __call__(
        self, operation: Literal["pool.resume"], body: ResumePoolRequest, *, deadline: float = ...
    ) -> PausePoolReply: ...

    @overload
    async def __call__(
        self, operation: Literal["server.register"], body: RegisterServerRequest, *, deadline: float = ...
    ) -> RegisterServerReply: ...

    @overload
    async def __call__(
        self, operation: Literal["server.heartbeat"], body: ServerHeartbeatRequest, *, deadline: float = ...
    ) -> ServerHeartbeatReply: ...

    @overload
    async def __call__(
        self, operation: Literal["server.remove"], body: RemoveServerRequest, *, deadline: float = ...
    ) -> RemoveServerReply: ...

    @overload
    async def __call__(
        self, operation: Literal["server.update"], body: UpdateServerRequest, *, deadline: float = ...
    ) -> ServerChangeReply: ...

    @overload
    async def __call__(
        self, operation: Literal["server.drain"], body: DrainServerRequest, *, deadline: float = ...
    ) -> ServerChangeReply: ...

    @overload
    async def __call__(
        self, operation: Literal["server.cordon"], body: CordonServerRequest, *, deadline: float = ...
    ) -> ServerChangeReply: ...

    @overload
    async def __call__(
        self, operation: Literal["server.uncordon"], body: UncordonServerRequest, *, deadline: float = ...
    ) -> ServerChangeReply: ...

    @overload
    async def __call__(
        self, operation: Literal["server.fence"], body: FenceServerRequest, *, deadline: float = ...
    ) -> FenceServerReply: ...

    @overload
    async def __call__(
        self, operation: Literal["server.reconcile"], body: ReconcileServerRequest, *, deadline: float = ...
    ) -> ReconcileServerReply: ...

    @overload
    async def __call__(
        self, operation: Literal["server.quarantine"], body: QuarantineServerRequest, *, deadline: float = ...
    ) -> FenceServerReply: ...

    @overload
    async def __call__(
        self, operation: Literal["server.get"], body: GetServerRequest, *, deadline: float = ...
    ) -> ServerStatus: ...

    @overload
    async def __call__(
        self, operation: Literal["server.list"], body: ListServersRequest, *, deadline: float = ...
    ) -> ListServersReply: ...

    @overload
    async def __call__(
        self, operation: Literal["worker.register"], body: RegisterWorkerRequest, *, deadline: float = ...
    ) -> RegisterWorkerReply: ...

    @overload
    async def __call__(
        self, operation: Literal["worker.heartbeat"], body: WorkerHeartbeatRequest, *, deadline: float = ...
    ) -> WorkerHeartbeatReply: ...

    @overload
    async def __call__(
        self, operation: Literal["worker.sync"], body: SyncWorkerRequest, *, deadline: float = ...
    ) -> SyncWorkerReply: ...

    @overload
    async def __call__(
        self, operation: Literal["worker.deregister"], body: DeregisterWorkerRequest, *, deadline: float = ...
    ) -> DeregisterWorkerReply: ...

    @overload
    async def __call__(
        self, operation: Literal["worker.list"], body: ListWorkersRequest, *, deadline: float = ...
    ) -> ListWorkersReply: ...

    @overload
    async def __call__(
        self, operation: Literal["lb.leases"], body: ListLeasesRequest, *, deadline: float = ...
    ) -> ListLeasesReply: ...

    @overload
    async def __call__(
        self, operation: Literal["lb.lease"], body: GetLeaseRequest, *, deadline: float = ...
    ) -> LeaseStatus: ...

    @overload
    async def __call__(
        self, operation: Literal["lb.sessions"], body: ListSessionsRequest, *, deadline: float = ...
    ) -> ListSessionsReply: ...

    @overload
    async def __call__(
        self, operation: Literal["pool.audit"], body: AuditPoolRequest, *, deadline: float = ...
    ) -> AuditPoolReply: ...

    @overload
    async def __call__(
        self, operation: Literal["round.list"], body: ListRoundsRequest, *, deadline: float = ...
    ) -> ListRoundsReply: ...

    @overload
    async def __call__(
        self, operation: Literal["group.list"], body: ListGroupsRequest, *, deadline: float = ...
    ) -> ListGroupsReply: ...

    @overload
    async def __call__(
        self, operation: Literal["request.get"], body: GetRequestRequest, *, deadline: float = ...
    ) -> RequestDetails: ...

    @overload
    async def __call__(
        self, operation: Literal["request.list"], body: ListRequestsRequest, *, deadline: float = ...
    ) -> ListRequestsReply: ...

    @overload
    async def __call__(
        self, operation: Literal["round.next"], body: NextRoundRequest, *, deadline: float = ...
    ) -> NextRoundReply: ...

    @overload
    async def __call__(
        self, operation: Literal["round.open"], body: OpenRoundRequest, *, deadline: float = ...
    ) -> OpenRoundReply: ...

    @overload
    async def __call__(
        self, operation: Literal["round.takeover"], body: TakeoverRoundRequest, *, deadline: float = ...
    ) -> TakeoverRoundReply: ...

    @overload
    async def __call__(
        self, operation: Literal["round.submit"], body: SubmitGroupsRequest, *, deadline: float = ...
    ) -> SubmitGroupsReply: ...

    @overload
    async def __call__(
        self, operation: Literal["round.status"], body: RoundStatusRequest, *, deadline: float = ...
    ) -> RoundStatus: ...

    @overload
    async def __call__(
        self, operation: Literal["round.results"], body: RoundResultsRequest, *, deadline: float = ...
    ) -> RoundResultsReply: ...

    @overload
    async def __call__(
        self, operation: Literal["round.reward"], body: RewardGroupsRequest, *, deadline: float = ...
    ) -> RewardGroupsReply: ...

    @overload
    async def __call__(
        self, operation: Literal["round.close"], body: CloseRoundRequest, *, deadline: float = ...
    ) -> CloseRoundReply: ...

    @overload
    async def __call__(
        self, operation: Literal["request.claim"], body: ClaimRequest, *, deadline: float = ...
    ) -> ClaimReply: ...

    @overload
    async def __call__(
        self, operation: Literal["request.segments"], body: RequestSegmentsRequest, *, deadline: float = ...
    ) -> RequestSegmentsReply: ...

    @overload
    async def __call__(
        self, operation: Literal["request.save"], body: SaveRequest, *, deadline: float = ...
    ) -> SaveReply: ...

    @overload
    async def __call__(
        self, operation: Literal["request.save-many"], body: SaveManyRequest, *, deadline: float = ...
    ) -> SaveManyReply: ...

    @overload
    async def __call__(
        self, operation: Literal["request.complete"], body: CompleteRequest, *, deadline: float = ...
    ) -> CompleteReply: ...

    @overload
    async def __call__(
        self, operation: Literal["request.complete-many"], body: CompleteManyRequest, *, deadline: float = ...
    ) -> CompleteManyReply: ...

    @overload
    async def __call__(
        self, operation: Literal["request.fail"], body: FailRequest, *, deadline: float = ...
    ) -> FailReply: ...

    @overload
    async def __call__(
        self, operation: Literal["request.abort"], body: AbortRequestsRequest, *, deadline: float = ...
    ) -> AbortRequestsReply: ...

    @overload
    async def __call__(
        self, operation: Literal["weights.begin"], body: BeginWeightsRequest, *, deadline: float = ...
    ) -> WeightSyncReply: ...

    @overload
    async def __call__(
        self, operation: Literal["weights.commit"], body: CommitWeightsRequest, *, deadline: float = ...
    ) -> WeightSyncReply: ...

    @overload
    async def __call__(
        self, operation: Literal["weights.rollback"], body: RollbackWeightsRequest, *, deadline: float = ...
    ) -> WeightSyncReply: ...

    @overload
    async def __call__(
        self, operation: Literal["weights.status"], body: WeightsStatusRequest, *, deadline: float = ...
    ) -> WeightsStatusReply: ...

    @overload
    async def __call__(
        self, operation: Literal["round.cancel"], body: CancelRoundRequest, *, deadline: float = ...
    ) -> CancelRoundReply: ...

    @overload
    async def __call__(
        self, operation: Literal["longtail.requeue"], body: RequeueRequest, *, deadline: float = ...
    ) -> RequeueReply: ...

    @overload
    async def __call__(
        self, operation: Literal["longtail.drop"], body: DropLongtailRequest, *, deadline: float = ...
    ) -> DropLongtailReply: ...

    @overload
    async def __call__(
        self, operation: Literal["longtail.stats"], body: LongtailStatsRequest, *, deadline: float = ...
    ) -> LongtailStats: ...

    @overload
    async def __call__(
        self, operation: Literal["longtail.list"], body: LongtailListRequest, *, deadline: float = ...
    ) -> LongtailListReply: ...

    @overload
    async def __call__(
        self, operation: Literal["job.configure"], body: ConfigureJobRequest, *, deadline: float = ...
    ) -> ConfigureJobReply: ...

    @overload
    async def __call__(
        self, operation: Literal["job.delete"], body: DeleteJobRequest, *, deadline: float = ...
    ) -> DeleteJobReply: ...

    @overload
    async def __call__(
        self, operation: Literal["pool.ledger"], body: PoolLedgerRequest, *, deadline: float = ...
    ) -> PoolLedgerReply: ...

    @overload
    async def __call__(
        self, operation: Literal["pool.delete"], body: DeletePoolRequest, *, deadline: float = ...
    ) -> DeletePoolReply: ...

    @overload
    async def __call__(
        self, operation: Literal["job.reconcile"], body: ReconcileJobRequest, *, deadline: float = ...
    ) -> ReconcileJobReply: ...

    @overload
    async def __call__(
        self, operation: Literal["job.snapshot"], body: SnapshotJobRequest, *, deadline: float = ...
    ) -> SnapshotJobReply: ...

    @overload
    async def __call__(
        self, operation: Literal["job.restore"], body: RestoreJobRequest, *, deadline: float = ...
    ) -> RestoreJobReply: ...

    @overload
    async def __call__(
        self, operation: Literal["job.snapshots"], body: ListSnapshotsRequest, *, deadline: float = ...
    ) -> ListSnapshotsReply: ...

    @overload
    async def __call__(
        self, operation: Literal["rebalance.configure"], body: ConfigureRebalanceRequest, *, deadline: float = ...
    ) -> RebalanceSettings: ...

    @overload
    async def __call__(
        self, operation: Literal["rebalance.plan"], body: PlanRebalanceRequest, *, deadline: float = ...
    ) -> RebalanceStatus: ...

    @overload
    async def __call__(
        self, operation: Literal["rebalance.execute"], body: ExecuteRebalanceRequest, *, deadline: float = ...
    ) -> RebalanceStatus: ...

    @overload
    async def __call__(
        self, operation: Literal["rebalance.status"], body: RebalanceStatusRequest, *, deadline: float = ...
    ) -> RebalanceStatus: ...

    @overload
    async def __call__(
        self, operation: Literal["job.status"], body: JobStatusRequest, *, deadline: float = ...
    ) -> JobStatus: ...

    @overload
    async def __call__(
        self, operation: Literal["job.list"], body: ListJobsRequest, *, deadline: float = ...
    ) -> ListJobsReply: ...

    @overload
    async def __call__(
        self, operation: Literal["job.ledger"], body: JobLedgerRequest, *, deadline: float = ...
    ) -> JobLedgerReply: ...

    @overload
    async def __call__(
        self, operation: Literal["prompt.remember"], body: RememberPromptsRequest, *, deadline: float = ...
    ) -> RememberPromptsReply: ...

    @overload
    async def __call__(
        self, operation: Literal["prompt.lengths"], body: PromptLengthsRequest, *, deadline: float = ...
    ) -> PromptLengthsReply: ...

    @overload
    async def __call__(
        self, operation: Literal["payload.put"], body: PutPayloadRequest, *, deadline: float = ...
    ) -> PutPayloadReply: ...

    @overload
    async def __call__(
        self, operation: Literal["payload.get"], body: GetPayloadRequest, *, deadline: float = ...
    ) -> GetPayloadReply: ...

    @overload
    async def __call__(
        self, operation: Literal["payload.get-many"], body: GetPayloadsRequest, *, deadline: float = ...
    ) -> GetPayloadsReply: ...

    @overload
    async def __call__(
        self, operation: Literal["payload.stat"], body: StatPayloadRequest, *, deadline: float = ...
    ) -> StatPayloadReply: ...

    @overload
    async def __call__(
        self, operation: Literal["service.log-level"], body: SetLogLevelRequest, *, deadline: float = ...
    ) -> LogLevelReply: ...

    @overload
    async def __call__(
        self, operation: Literal["service.readiness"], body: GetReadinessRequest, *, deadline: float = ...
    ) -> ReadinessReply: ...
