"""Types of the protocol, with the names of the wire."""

# Made by `npm run schema` from docs/protocol/asyncapi.json. Do not edit.

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, Union, overload

if TYPE_CHECKING:
    from typing_extensions import NotRequired

class AbortAttemptsCommand(TypedDict):
    """`worker.<workerId>.abort`, sent to the worker, at least once: stop these attempts on their engines
    and end them with `request.fail`; stop the calls under these leases on their engines and end them
    with `lb.release`.
    """

    workerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. It is
    opaque and compared for equality only. It is random instead of counted, because a Redis that loses
    its last changes would give the same number twice.
    """

    cause: Literal["cut", "abort", "move", "expired"]
    """Why: its group was `cut` or the weights of the pool change (`cut` too: continue with the tokens), it
    was aborted (`abort`), it is being moved (`move`), or its worker epoch has `expired`.
    """

    attempts: list[AbortedAttempt]
    """The attempts."""

    leases: NotRequired[list[AbortedLease]]
    """The leases; absent if there are none."""


class AbortRequestsReply(TypedDict):
    """Reply of `request.abort`."""

    cursor: NotRequired[int]
    """Set if there are more: send the same body with this cursor."""

    abortId: str
    """Id of the abort, from the request."""

    results: list[AbortResult]
    """One result for each request of the page."""


class AbortRequestsRequest(TypedDict):
    """`request.abort`: stops the requests of exactly one selector: `requestIds`, `sessionId`, `groupId`
    (with `job`), `workerId`, `serverId`, `roundId` (with `job`), `job` alone, or `all`. Later requests
    are not affected, except requests and groups that are named here and not known yet: they end
    `dropped` if they are submitted within ten minutes. An acquire that waits for a server is answered
    ABORTED. Later acquires are not affected, because a caller may use one requestId for all turns of a
    trajectory, unless `refuseAcquiresMs` is given.
    """

    abortId: str
    """Id of this abort, for idempotency; use the same for the next page and to read the result later."""

    requestIds: NotRequired[list[str]]
    """Requests of rounds, or requestIds of acquires by callers that only route."""

    refuseAcquiresMs: NotRequired[int]
    """With `requestIds`: acquires of unknown requests are answered ABORTED for this long, milliseconds."""

    scope: NotRequired[AbortScope]
    """Scope of an abort by `requestIds`, `sessionId`, `workerId` or `serverId`. `sample`: only the
    request; its group continues while it has `minSamples` others, otherwise it is dropped. `group`: the
    whole group. Default: `abortScope` of the round.
    """

    sessionId: NotRequired[str]
    """The requests whose acquires named this session."""

    groupId: NotRequired[str]
    """The requests of this group; with `job`."""

    workerId: NotRequired[str]
    """The requests of this worker."""

    serverId: NotRequired[str]
    """The requests that run on this server."""

    roundId: NotRequired[str]
    """The requests of this round; with `job`."""

    job: NotRequired[str]
    """The job of `groupId` or `roundId`; alone: all its requests."""

    all: NotRequired[Literal[True]]
    """All requests of the pool."""

    waitMs: NotRequired[int]
    """Wait at most this long for the confirmations of the page, milliseconds."""

    reason: NotRequired[str]
    """Stored with the dropped requests."""

    cursor: NotRequired[int]
    """Cursor of the previous page."""

    limit: NotRequired[int]
    """Maximum results of the page."""


class AbortResult(TypedDict):
    """Result for one aborted request. Its tokens are kept as long as this answer."""

    segments: NotRequired[list[Segment]]
    """References of the tokens of ended attempts, in order."""

    segmentsFollow: NotRequired[Literal[True]]
    """The segments do not fit this message, and `segments` is empty: read them with `request.segments`."""

    requestId: str
    """Id of a request: `<job>/<groupId>/<sampleIndex>`, with `~0` for `~` and `~1` for `/` in job and
    group; unique in the pool.
    """

    outcome: Literal["aborted", "aborting", "already-finished", "not-found"]
    """`aborted`: its worker has confirmed that the engine has stopped it, or no worker had it. `aborting`:
    not confirmed yet; the command is repeated. `already-finished`: it had ended before. `not-found`:
    the request is unknown.
    """

    tokenCount: NotRequired[int]
    """Tokens of all attempts."""

    leaseId: NotRequired[str]
    """Lease, if the caller only routes."""

    unconfirmed: NotRequired[bool]
    """The worker has not confirmed within the deadline and had no lease: the request was ended without a
    confirmation.
    """

    fenced: NotRequired[bool]
    """The worker has not confirmed within the deadline: the epoch of its server was expired."""


class AbortedAttempt(TypedDict):
    """An attempt to stop."""

    requestId: str
    """Id of a request: `<job>/<groupId>/<sampleIndex>`, with `~0` for `~` and `~1` for `/` in job and
    group; unique in the pool.
    """

    attempt: str
    """Fencing number of one attempt of a request: `<number>-<random>`. The number counts the attempts for
    display; the whole text is compared. `0` for a request that was never claimed.
    """


class AbortedLease(TypedDict):
    """A lease of a caller that only routes."""

    leaseId: str
    """Id of a lease, `<sequence>.<acquireId>`: the sequence fences a lease against a later one of the same
    acquireId.
    """

    requestId: str
    """Request that the acquire named."""


class Acceptance(TypedDict):
    """Samples of one range of lengths."""

    fromTokens: float
    """Shortest length of the range."""

    toTokens: float
    """End of the range, exclusive."""

    ratio: float
    """Share of the trained samples / share of the started samples; weight a trained sample by the inverse."""


class AcquireItem(TypedDict):
    """One acquire; part of `lb.acquire-many` and, with the worker, of `lb.acquire`."""

    acquireId: str
    """Id of the acquire, for idempotency: a repeat gets the same lease while it lives and for 120 s
    afterwards.
    """

    requestId: str
    """For correlation only; a trajectory may use one requestId for all turns."""

    attempt: NotRequired[str]
    """Attempt of a claimed request that the lease is for; `lb.leases` shows it."""

    sessionId: NotRequired[str]
    """Turns of one session stay on one server."""

    groupId: NotRequired[str]
    """Siblings of one prompt, for spread or affinity."""

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
    """Only a server whose engine is not known to lack any of these features."""

    model: NotRequired[str]
    """Only a server whose engine lists this model or adapter, or whose list is not known; no constraint
    while the engines of the pool all list the same models. MODEL_NOT_FOUND when no server of the pool
    has it.
    """

    dpRank: NotRequired[int]
    """Data-parallel rank of the session; stored with its binding and returned to later turns."""

    boundServerId: NotRequired[str]
    """Server of the lease, if it can take the lease, regardless of session and policy; otherwise the usual
    choice, with the branch `bound-unavailable`. The session is bound to the chosen server.
    """

    boundServerEpoch: NotRequired[str]
    """Only this epoch of `boundServerId`."""

    explain: NotRequired[bool]
    """Store and return the full snapshot of the decision."""

    waitMs: NotRequired[int]
    """Wait at most this long for room, milliseconds; 0 = answer at once."""


class AcquireManyReply(TypedDict):
    """Reply of `lb.acquire-many`."""

    servers: dict[str, GrantedServer]
    """Each server named in `leases`, once."""

    leases: list[Union[GrantedItem, RefusedItem]]
    """In the order of the request; with `decision` for items with `explain`. `lb.decisions` has all
    decisions.
    """


class AcquireManyRequest(TypedDict):
    """`lb.acquire-many`: many acquires, which never wait (waitMs of the items must be absent or 0). An
    item without room in the reply is answered REPLY_FULL; `details.granted` is true if the caller holds
    its lease, and the same item sent again returns the full answer.
    """

    workerId: str
    """Id of a worker, which holds leases and requests, chosen by the worker."""

    workerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. It is
    opaque and compared for equality only. It is random instead of counted, because a Redis that loses
    its last changes would give the same number twice.
    """

    acquires: list[AcquireItem]
    """The acquires, each with another acquireId."""


class AcquireRequest(TypedDict):
    """`lb.acquire`"""

    acquireId: str
    """Id of the acquire, for idempotency: a repeat gets the same lease while it lives and for 120 s
    afterwards.
    """

    requestId: str
    """For correlation only; a trajectory may use one requestId for all turns."""

    attempt: NotRequired[str]
    """Attempt of a claimed request that the lease is for; `lb.leases` shows it."""

    sessionId: NotRequired[str]
    """Turns of one session stay on one server."""

    groupId: NotRequired[str]
    """Siblings of one prompt, for spread or affinity."""

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
    """Only a server whose engine is not known to lack any of these features."""

    model: NotRequired[str]
    """Only a server whose engine lists this model or adapter, or whose list is not known; no constraint
    while the engines of the pool all list the same models. MODEL_NOT_FOUND when no server of the pool
    has it.
    """

    dpRank: NotRequired[int]
    """Data-parallel rank of the session; stored with its binding and returned to later turns."""

    boundServerId: NotRequired[str]
    """Server of the lease, if it can take the lease, regardless of session and policy; otherwise the usual
    choice, with the branch `bound-unavailable`. The session is bound to the chosen server.
    """

    boundServerEpoch: NotRequired[str]
    """Only this epoch of `boundServerId`."""

    explain: NotRequired[bool]
    """Store and return the full snapshot of the decision."""

    waitMs: NotRequired[int]
    """Wait at most this long for room, milliseconds; 0 = answer at once."""

    workerId: str
    """The worker that will hold the lease."""

    workerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. It is
    opaque and compared for equality only. It is random instead of counted, because a Redis that loses
    its last changes would give the same number twice.
    """


class AttemptEndedEvent(TypedDict):
    """An attempt ended without a sample. `cut`: its round was completed without its group, or the group
    was requeued. `moved`: the request continues on another server. `stopped`: it was stopped for a
    change of weights. `returned`: it returned unfinished, e.g. because of a failure of the engine or an
    expired worker. `failed` and `dropped`: the request has ended for good.
    """

    type: Literal["attempt.ended"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool it happened in."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    requestId: str
    """The request."""

    roundId: str
    """Round of the attempt."""

    attempt: str
    """The attempt."""

    queuedAtMs: NotRequired[int]
    """When the request became pending, by the clock of Redis, milliseconds since 1970."""

    claimedAtMs: NotRequired[int]
    """When a worker claimed it, by the clock of Redis, milliseconds since 1970."""

    serverId: NotRequired[str]
    """The server that the worker has reported; absent if it never did."""

    attemptTokens: int
    """Tokens of this attempt."""

    run: NotRequired[AttemptRun]
    """Measurements of the worker; absent if the attempt had no server, or if the worker has expired."""

    outcome: Literal["cut", "moved", "stopped", "returned", "failed", "dropped"]
    """Outcome for the request."""


class AttemptRun(TypedDict):
    """Server and times of one attempt, as its worker has measured them. Times are milliseconds since its
    claim.
    """

    serverId: str
    """The server of its lease."""

    weightVersion: int
    """Weight version of the server at the grant of the lease."""

    leasedMs: int
    """Time to the grant of the lease: the wait for a server."""

    firstTokenMs: NotRequired[int]
    """Time to the first token; absent if there was none."""

    endedMs: int
    """Time to the end of the generation."""


class AuditFinding(TypedDict):
    """One fault of the counts."""

    check: str
    """Which rule is broken."""

    message: str
    """Place of the fault, and the values found there."""


class AuditPoolReply(TypedDict):
    """Result of an audit."""

    balanced: bool
    """Nothing is wrong."""

    findings: list[AuditFinding]
    """The first 128 findings."""

    findingCount: int
    """Number of all findings."""

    counts: dict[str, int]
    """Counted items, by name."""

    unproven: list[str]
    """Items that are neither proven nor wrong, the first 128: jobs whose requests changed all the time,
    and items that were not read or not confirmed within 8 s.
    """


class AuditPoolRequest(TypedDict):
    """`pool.audit`: compares the counts of the pool with its leases and requests. An audit ends after 8 s
    with the results so far; calls during an audit get its result. `npm run audit` has no such limit,
    and also repairs.
    """


class AutoChoiceBroken(TypedDict):
    """Bounds that are known to be broken, whatever the reason, also if it is `late`: `measured` by the
    ledger of the job, or `predicted` of the last choice by its replay. Absent if none is.
    """

    measured: NotRequired[list[AutoBound]]
    """By the ledger of the job; absent if none is."""

    predicted: NotRequired[list[AutoBound]]
    """By the replay of the last choice; absent if none is."""


class AutoChoiceBest(TypedDict):
    """The fastest policy that keeps the bounds; absent while nothing is known."""

    policy: TailPolicyName
    """How a round treats its slowest groups (libs/policies/src/tail/README.md). `auto` chooses one of the
    others for each round, within bounds.
    """

    overProvision: float
    """The fastest policy that keeps the bounds; absent while nothing is known."""


class AutoChoice(TypedDict):
    """Choice of `auto` for a round, and its reason."""

    policy: TailPolicyName
    """The policy of the round; never `auto`."""

    reason: AutoReason
    """Why `auto` chose a policy. `unknown`: too few groups are closed to predict anything, so it waits.
    `best`: it is the best that keeps the bounds. `step`: it is on the way to the best. `predicted`: the
    last choice would break a bound. `measured`: the ledger of the job breaks a bound, so it goes back.
    `late`: the replays took too long, so it chose among `wait`, its last choice and the candidates
    nearest to that choice.
    """

    broken: NotRequired[AutoChoiceBroken]
    """Bounds that are known to be broken, whatever the reason, also if it is `late`: `measured` by the
    ledger of the job, or `predicted` of the last choice by its replay. Absent if none is.
    """

    best: NotRequired[AutoChoiceBest]
    """The fastest policy that keeps the bounds; absent while nothing is known."""

    groups: int
    """Groups of closed rounds that the predictions are made from."""

    frontier: list[AutoRow]
    """All policies that it compared; empty while nothing is known, not all if it was late."""


class AutoRow(TypedDict):
    """Prediction of `auto` for one policy, by a replay of the samples of the last rounds. Shares are 0 to
    1.
    """

    policy: TailPolicyName
    """Never `auto`."""

    overProvision: float
    """Launched / needed groups."""

    speed: float
    """Time of a step under `wait` / under this policy."""

    offPolicyShare: float
    """Trained tokens of older weights / trained tokens."""

    versionSpan: int
    """Highest number of steps between the first token of a group and its training."""

    lengthBias: float
    """Mean length of trained samples / of started samples."""

    wasteShare: float
    """Generated tokens that nobody trains / generated tokens."""

    breaks: list[AutoBound]
    """Bounds that it would break; empty: it may be chosen."""


class BeginWeightsRequest(TypedDict):
    """`weights.begin`: stops leases and claims until `weights.commit`, `weights.rollback` or the deadline,
    which rolls back. At the deadline requests that run are stopped, with their tokens, and the weights
    of servers that were not reported since the begin are unknown: such servers take no leases until
    they are reported. A repeat with the same syncId extends the deadline, for a load that makes
    progress. Acquires and claims are answered POOL_PAUSED: at once, or after their `waitMs`.
    """

    syncId: str
    """Id of the change, for idempotency: a repeat returns its present state, and may make its deadline
    later.
    """

    version: int
    """Version of the new weights; not below the version of the pool."""

    mode: WeightSyncMode
    """Treatment of running requests."""

    deadlineMs: NotRequired[int]
    """Time until the rollback, milliseconds; in a repeat from the repeat on."""

    waitMs: NotRequired[int]
    """Wait until no request runs, at most this long, milliseconds. Not for `keep`."""

    job: NotRequired[str]
    """With `trainerEpoch`: only this trainer, or a trainer that took the job over, may end the change."""

    trainerEpoch: NotRequired[str]
    """Epoch of the trainer of `job`."""

    stamp: NotRequired[str]
    """Stamp of the last reply."""


class BlockedReason(TypedDict):
    """Why a round is blocked, and how to unblock it."""

    code: Literal["PAYLOAD_STORE_FULL", "UNAVAILABLE", "STORE_FULL", "NO_SERVER_AVAILABLE", "NO_WORKER_AVAILABLE"]
    """`PAYLOAD_STORE_FULL`: the payload quota of the job, or the disk of the payloads. `UNAVAILABLE`: the
    payload store cannot be written. `STORE_FULL`: the memory of Redis. `NO_SERVER_AVAILABLE`: no server
    takes requests, since their weights are unknown, or of other versions than the pool.
    `NO_WORKER_AVAILABLE`: no worker claims requests of the job.
    """

    reason: NotRequired[Literal["weights-unknown", "weights-differ", "no-worker-of-kind"]]
    """Only with `NO_SERVER_AVAILABLE` and `NO_WORKER_AVAILABLE`."""

    message: str
    """Advice, as text."""

    sinceMs: NotRequired[int]
    """Since when; absent for `STORE_FULL`, `NO_SERVER_AVAILABLE` and `NO_WORKER_AVAILABLE`."""

    workerKind: NotRequired[str]
    """Kind of worker that the job names; absent for built-in workers. Only with `no-worker-of-kind`."""

    workerKinds: NotRequired[list[str]]
    """Kinds of the workers that claim requests in the pool, '' for built-in ones. Only with
    `no-worker-of-kind`.
    """


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
    """Id of a lease, `<sequence>.<acquireId>`: the sequence fences a lease against a later one of the same
    acquireId.
    """


class CancelAcquireRequest(TypedDict):
    """`lb.cancel`: ends the wait of an acquire, which is answered RELEASED. A granted lease stays."""

    workerId: str
    """Id of a worker, which holds leases and requests, chosen by the worker."""

    workerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. It is
    opaque and compared for equality only. It is random instead of counted, because a Redis that loses
    its last changes would give the same number twice.
    """

    acquireId: str
    """The acquire that waits."""


class CancelRoundReply(TypedDict):
    """Reply of `round.cancel`."""

    stamp: str
    """State of Redis at the time of a reply: send the last one with the next call that takes a stamp."""

    roundId: str
    """Id of a round of a job, chosen by its trainer."""

    state: Literal["cancelled"]
    """Present state of the round."""

    mode: CancelMode
    """Mode from the request."""

    groups: int
    """Number of groups that are requeued or dropped; `round.status` has `settled` when all are."""


class CancelRoundRequest(TypedDict):
    """`round.cancel`: cancels a round that is not closed. Its step is not counted, and another round may
    be opened with another roundId. Workers get the same command as in a cut.
    """

    job: str
    """Id of a job, one training run, chosen by its trainer."""

    stamp: NotRequired[str]
    """Stamp of the last reply."""

    trainerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. It is
    opaque and compared for equality only. It is random instead of counted, because a Redis that loses
    its last changes would give the same number twice.
    """

    roundId: str
    """Id of a round of a job, chosen by its trainer."""

    mode: CancelMode
    """`requeue`: all its groups, also accepted ones, go to the long-tail queue with all tokens, under
    every policy. `drop`: they are dropped, and their tokens count as waste.
    """

    reason: NotRequired[str]
    """In the event `round.cancelled`, and in `group.dropped` of each dropped group."""


class Claim(TypedDict):
    """One request to run. `attempt` fences every later message about it."""

    segments: list[Segment]
    """References of the tokens of ended attempts, in order."""

    segmentsFollow: NotRequired[Literal[True]]
    """The segments do not fit this message, and `segments` is empty: read them with `request.segments`."""

    requestId: str
    """Id of a request: `<job>/<groupId>/<sampleIndex>`, with `~0` for `~` and `~1` for `/` in job and
    group; unique in the pool.
    """

    attempt: str
    """Fencing number of one attempt of a request: `<number>-<random>`. The number counts the attempts for
    display; the whole text is compared. `0` for a request that was never claimed.
    """

    job: str
    """Id of a job, one training run, chosen by its trainer."""

    roundId: str
    """Id of a round of a job, chosen by its trainer."""

    groupId: str
    """Id of a group, one prompt with its samples, unique in its job, chosen by its trainer."""

    sampleIndex: int
    """Index of the sample in its group, from 0."""

    promptRef: str
    """Reference of the prompt: JSON of `Prompt`."""

    sampling: SamplingParameters
    """Sampling parameters of the group."""

    maxTokens: int
    """Token budget of the whole sample, including the tokens of the segments."""

    timeoutMs: NotRequired[int]
    """Maximum generation time of the sample over all its attempts, milliseconds; `generatedMs` of it is
    used. When it is over, end the attempt with `request.fail`, reason `timeout`.
    """

    generatedMs: NotRequired[int]
    """Generation time of earlier attempts, milliseconds; absent without `timeoutMs`."""

    weightVersion: int
    """Version of the weights of its round."""

    boundServerId: NotRequired[str]
    """The server it was moved to: send it with `lb.acquire`, with its epoch."""

    boundServerEpoch: NotRequired[str]
    """Epoch of that server."""

    setbacks: NotRequired[int]
    """Number of its attempts in a row that an engine failed or did not serve, without a further token
    between them.
    """

    avoidServers: NotRequired[list[str]]
    """Servers of these attempts, the last one last: send them with `lb.acquire`."""

    priority: NotRequired[int]
    """Priority of its round, if that has one: send it with `lb.acquire`."""

    traceparent: NotRequired[str]
    """W3C trace context of the `round.open` of its round, if that was traced: send it to the engine."""


class ClaimReply(TypedDict):
    """Reply of `request.claim`. It may have fewer requests than asked for, because its size is limited."""

    claims: list[Claim]
    """The requests; empty if there are none."""


class ClaimRequest(TypedDict):
    """`request.claim`: takes pending requests. An empty reply after waitMs is not an error; POOL_PAUSED:
    the pool is paused.
    """

    workerId: str
    """Id of a worker, which holds leases and requests, chosen by the worker."""

    workerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. It is
    opaque and compared for equality only. It is random instead of counted, because a Redis that loses
    its last changes would give the same number twice.
    """

    claimId: str
    """Id of the claim, for idempotency."""

    max: int
    """Maximum number of requests."""

    waitMs: NotRequired[int]
    """Wait at most this long for a request, milliseconds."""

    job: NotRequired[str]
    """Claim requests of this job only, for a worker that cannot run requests of other jobs. Default: any
    job.
    """

    workerKind: NotRequired[str]
    """Kind of the worker: it gets requests of jobs that name the kind (`workerKind` of `round.open`), and
    no others. Default: a built-in worker, for jobs that name no kind.
    """


class ClearSessionsReply(TypedDict):
    """Reply of `lb.clear-sessions`."""

    cleared: int
    """Sessions that were forgotten or will be."""


class ClearSessionsRequest(TypedDict):
    """`lb.clear-sessions`: forgets all sessions; a session with leases is forgotten with its last lease."""


class CloseRoundReply(TypedDict):
    """Reply of `round.close`."""

    stamp: str
    """State of Redis at the time of a reply: send the last one with the next call that takes a stamp."""

    roundId: str
    """Id of a round of a job, chosen by its trainer."""

    stepsTrained: int
    """Steps trained, including this one."""

    trainedGroups: int
    """Groups of this round, without the excluded ones."""

    trainedRequests: int
    """Their samples."""


class CloseRoundRequest(TypedDict):
    """`round.close`: marks the groups of the round as trained."""

    job: str
    """Id of a job, one training run, chosen by its trainer."""

    stamp: NotRequired[str]
    """Stamp of the last reply."""

    trainerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. It is
    opaque and compared for equality only. It is random instead of counted, because a Redis that loses
    its last changes would give the same number twice.
    """

    roundId: str
    """Id of a round of a job, chosen by its trainer."""

    cursor: str
    """Cursor of the last page of `round.results`: proves which groups were read. ROUND_MISMATCH if they
    differ from the round.
    """

    groups: NotRequired[list[ReadGroup]]
    """The groups that were read: then the details of a ROUND_MISMATCH name missing, extra and different
    groups.
    """

    rewards: NotRequired[list[GroupRewards]]
    """Rewards that were not reported before, as in `round.reward`. They count even if the round cannot be
    closed yet.
    """

    remainingGroups: NotRequired[int]
    """With `rewards`: as in `round.reward`."""


class CommitWeightsRequest(TypedDict):
    """`weights.commit`: the engines have the new weights. Servers that do not report the version are
    `quarantined` until they do; the replies of their heartbeats have `requiredWeightVersion`.
    """

    syncId: str
    """The change of weights."""

    trainerEpoch: NotRequired[str]
    """Epoch of the trainer of the job; absent: the epoch that began the change."""

    stamp: NotRequired[str]
    """Stamp of the last reply."""


class CompleteReply(TypedDict):
    """State of the sample."""

    state: Literal["finished", "unfinished", "dropped"]
    """State of the sample. `unfinished`: its group was cut meanwhile and keeps the sample. `dropped`: its
    group no longer needs it.
    """

    groupAccepted: bool
    """The group has all its samples and a place in the round."""

    roundCompleted: bool
    """The round has all groups it needs."""


class CompleteRequest(TypedDict):
    """`request.complete`: the sample is finished. Store its payload before this call."""

    workerId: str
    """Id of a worker, which holds leases and requests, chosen by the worker."""

    workerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. It is
    opaque and compared for equality only. It is random instead of counted, because a Redis that loses
    its last changes would give the same number twice.
    """

    requestId: str
    """Id of a request: `<job>/<groupId>/<sampleIndex>`, with `~0` for `~` and `~1` for `/` in job and
    group; unique in the pool.
    """

    attempt: str
    """Fencing number of one attempt of a request: `<number>-<random>`. The number counts the attempts for
    display; the whole text is compared. `0` for a request that was never claimed.
    """

    finishReason: Literal["stop", "length"]
    """Why generation ended: the model stopped (`stop`), or the budget was used up (`length`)."""

    engineFinishReason: NotRequired[str]
    """The finish reason as the engine named it, e.g. `tool_calls`; absent if it named none."""

    segment: NotRequired[Segment]
    """The last segment; absent if the budget was used up before this attempt generated a token."""

    run: NotRequired[AttemptRun]
    """Server and times of the attempt, for the timeline of the round."""


class ConfigureJobReplyQuota(TypedDict):
    """The current quota."""

    weight: int
    """Weight of the job: claims are shared among the jobs with pending requests in proportion to their
    weights.
    """

    maxInFlight: NotRequired[int]
    """Maximum requests of the job that workers have at the same time; absent = no limit."""


class ConfigureJobReply(TypedDict):
    """Reply of `job.configure`."""

    job: str
    """Id of a job, one training run, chosen by its trainer."""

    version: int
    """Version of the quota, increased by 1 with each change; 0: the defaults."""

    quota: ConfigureJobReplyQuota
    """The current quota."""

    inFlight: int
    """Requests that workers have now."""


class ConfigureJobRequest(TypedDict):
    """`job.configure`: replaces the quota of a job, also before its first round; without `quota` it only
    returns it. A repeat changes nothing. Errors: VERSION_MISMATCH.
    """

    job: str
    """Id of a job, one training run, chosen by its trainer."""

    quota: NotRequired[JobQuota]
    """The new quota, which replaces the old one as a whole; absent: no change."""

    ifVersion: NotRequired[int]
    """Only if the quota has this version, or is already as asked; otherwise VERSION_MISMATCH."""


class ConfigurePoolRequest(TypedDict):
    """`pool.configure`: changes the given settings; absent ones stay. All are checked before any is
    changed; a repeat changes nothing.
    """

    policy: NotRequired[RoutingPolicy]
    """Default `least-inflight`."""

    affinityBreakMargin: NotRequired[Union[int, Literal["never"]]]
    """A session leaves its server if that has more leases than the server that the policy would choose,
    plus this margin: 0 to 1,000,000. `never` (the default): it stays under any load.
    """

    affinityBreakMaxContextTokens: NotRequired[int]
    """An acquire with more `contextTokens` than this stays, because another prefill would cost more. Unset
    = no limit.
    """

    groupPlacement: NotRequired[GroupPlacement]
    """Default `group-spread`."""

    groupAffinityCap: NotRequired[int]
    """Maximum leases of one group on one server with affinity; further leases go to other servers. Default
    8.
    """

    groupSpreadBelowTokens: NotRequired[int]
    """`auto` spreads siblings with fewer `contextTokens` than this. Default 2,048."""

    groupSpreadAboveKvUse: NotRequired[float]
    """`auto` spreads away from a server that reported a KV use above this, 0 to 1. Default 0.7."""

    sessionIdleMs: NotRequired[int]
    """Idle time after which a session is forgotten, milliseconds. Default: SESSION_IDLE_MS of the
    load-balancer.
    """

    maxSessions: NotRequired[int]
    """Maximum sessions; above it the session that was idle longest is forgotten. Default 200,000."""

    decisionSampleEvery: NotRequired[int]
    """Every n-th decision is stored with its full snapshot. Default 1,000."""

    poolMaxInflight: NotRequired[int]
    """Maximum leases of the whole pool. Unset = the sum of its servers."""

    requiredWeightVersion: NotRequired[int]
    """A server that reports another weight version is `quarantined` until it reports this one. Unset = any
    version.
    """

    slowStartMs: NotRequired[int]
    """Time in which a new or restarted server reaches its capacity, milliseconds. Default 0 = at once."""

    slowStartFraction: NotRequired[float]
    """Share of its capacity with which a server in slow start begins. Default 0.1; at least one lease."""

    breakerFailures: NotRequired[int]
    """Number of consecutive failed calls (released as `failed`: a broken stream, 500) that make a server
    suspect although it answers probes, unless fewer than half of the servers would be left. 0 = off.
    Default 5.
    """

    breakerOpenMs: NotRequired[int]
    """How long the server is then suspect, milliseconds; after that it gets one call first. Default
    10,000.
    """

    adaptiveConcurrency: NotRequired[Literal[0, 1]]
    """1 = the capacity of each server follows its load reports. Default 0 = off."""

    adaptIntervalMs: NotRequired[int]
    """Pause between two changes of a server's capacity, milliseconds. Default 2,000."""

    reset: NotRequired[list[PoolSettingName]]
    """Names of settings to reset to their defaults before the others are set."""

    ifVersion: NotRequired[int]
    """Only if the settings have this version, or are already as asked; otherwise VERSION_MISMATCH."""


class ConfigureRebalanceRequest(TypedDict):
    """`rebalance.configure`: changes the given settings of the rebalancer; absent ones stay; an empty body
    returns the settings. A repeat changes nothing. Errors: VERSION_MISMATCH.
    """

    mode: NotRequired[Literal["off", "dry-run", "on"]]
    """`off`; `on`: make plans and move requests; `dry-run`: make, store and count plans only."""

    policy: NotRequired[RebalancePolicy]
    """How moves are planned."""

    tiers: NotRequired[list[int]]
    """Batch sizes for which the engines have captured graphs; strictly descending."""

    stepBaseSeconds: NotRequired[float]
    """A decode step takes stepBaseSeconds + stepPerSequenceSeconds x tier."""

    stepPerSequenceSeconds: NotRequired[float]
    """Time of a decode step for each sequence of its tier, seconds."""

    prefillTokensPerSecond: NotRequired[float]
    """Prefill speed of an engine, tokens per second."""

    kvBytesPerToken: NotRequired[float]
    """Servers with one value of the label `kv-store` keep their KV caches in one store: size of the cache
    of a token, bytes; 0: every move computes the cache again.
    """

    kvBytesPerSecond: NotRequired[float]
    """Bytes that an engine reads from its KV store per second; 0: every move computes the cache again."""

    kvSetupSeconds: NotRequired[float]
    """Time to begin to read a cache from the KV store, seconds."""

    minGainRatio: NotRequired[float]
    """The gain must be more than this many times the longest stall."""

    pauseSeconds: NotRequired[float]
    """Further time that a plan costs, seconds."""

    maxMovesPerRequest: NotRequired[int]
    """Maximum moves of one request."""

    minMoveIntervalMs: NotRequired[int]
    """Minimum time between two moves of one request, milliseconds."""

    minRemainingTokens: NotRequired[int]
    """A request with fewer expected remaining tokens stays."""

    movesDrained: NotRequired[bool]
    """Move requests away from draining servers."""

    maxRunning: NotRequired[int]
    """`tier-min`: most requests that an engine runs at once, `max_num_running_reqs` of the published rule;
    0: the largest tier.
    """

    minPlanIntervalMs: NotRequired[int]
    """Minimum time between two plans, milliseconds."""

    planIntervalMs: NotRequired[int]
    """Time after which a plan is made without a trigger, milliseconds."""

    planIntervalSteps: NotRequired[int]
    """Decode steps between two plans, `check_interval` of the published rule: then only a drain triggers
    one before. 0: plans are triggered by changes and `planIntervalMs`.
    """

    ifVersion: NotRequired[int]
    """Only if the settings have this version, or are already as asked; otherwise VERSION_MISMATCH."""


class CordonServerRequest(TypedDict):
    """`server.cordon`: stops new leases; existing ones continue. It stays in force after a restart of the
    engine.
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
    """Leases of the chosen server, this one included."""

    via: NotRequired[DecisionBranch]
    """For an acquire that waited, or whose `boundServerId` could not take it: the branch that chose the
    server.
    """

    policyVersion: NotRequired[int]
    """Version of the pool's settings."""

    key: NotRequired[float]
    """Load key of the chosen server before the choice, in the unit of the policy."""

    best: NotRequired[list[RankedServer]]
    """The first four servers in the order of the policy that meet the constraints, with their keys; for
    consistent-hash one.
    """

    eligible: NotRequired[int]
    """Number of servers with room, before constraints."""

    snapshot: NotRequired[DecisionSnapshot]
    """All input of the choice, if requested by `explain` or sampled."""


class DecisionRecord(TypedDict):
    """One recorded choice."""

    seq: int
    """Sequence of the choice: the sequence of the lease, or a separate one for a transfer."""

    acquireId: str
    """The acquire of the choice."""

    serverId: str
    """Id of a server (one engine with its address), chosen by the caller that registers it."""

    decidedAtMs: int
    """When the choice was made, milliseconds since 1970."""

    decision: Decision
    """The choice."""


class DecisionSnapshotRequest(TypedDict):
    """The fields of the acquire that affect the choice."""

    acquireId: str
    """Id of the acquire, for idempotency: a repeat gets the same lease while it lives and for 120 s
    afterwards.
    """

    requestId: str
    """For correlation only; a trajectory may use one requestId for all turns."""

    attempt: NotRequired[str]
    """Attempt of a claimed request that the lease is for; `lb.leases` shows it."""

    sessionId: NotRequired[str]
    """Turns of one session stay on one server."""

    groupId: NotRequired[str]
    """Siblings of one prompt, for spread or affinity."""

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
    """Only a server whose engine is not known to lack any of these features."""

    model: NotRequired[str]
    """Only a server whose engine lists this model or adapter, or whose list is not known; no constraint
    while the engines of the pool all list the same models. MODEL_NOT_FOUND when no server of the pool
    has it.
    """

    dpRank: NotRequired[int]
    """Data-parallel rank of the session; stored with its binding and returned to later turns."""

    boundServerId: NotRequired[str]
    """Server of the lease, if it can take the lease, regardless of session and policy; otherwise the usual
    choice, with the branch `bound-unavailable`. The session is bound to the chosen server.
    """

    boundServerEpoch: NotRequired[str]
    """Only this epoch of `boundServerId`."""


class DecisionSnapshot(TypedDict):
    """All input of a choice: `replayDecision` repeats the choice."""

    settings: PoolSettings
    """Settings of the pool."""

    request: DecisionSnapshotRequest
    """The fields of the acquire that affect the choice."""

    boundTo: NotRequired[str]
    """Server of the session, if it is still usable."""

    namedServer: NotRequired[str]
    """Server of `boundServerId`, if it could take the lease."""

    newestWeightVersion: int
    """Newest weight version of the servers that take leases."""

    servers: list[SnapshotServer]
    """The first 128 servers in the order of the policy, the bound one and the chosen one."""

    truncated: NotRequired[bool]
    """There were more servers than are listed."""


class DecisionsReply(TypedDict):
    """Reply of `lb.decisions`."""

    cursor: NotRequired[str]
    """Send this for the next page; absent on the last page."""

    decisions: list[DecisionRecord]
    """The choices, latest first."""


class DecisionsRequest(TypedDict):
    """`lb.decisions`: one page of recent choices, latest first."""

    cursor: NotRequired[str]
    """Cursor of the previous page."""

    limit: NotRequired[int]
    """Maximum entries of the page, at most 128 (default), or 16 with snapshots."""

    full: NotRequired[bool]
    """Only decisions with a snapshot, which are stored separately."""


class DeleteJobReply(TypedDict):
    """Reply of `job.delete`."""

    job: str
    """Id of a job, one training run, chosen by its trainer."""

    state: Literal["deleting", "deleted"]
    """`deleting`: not finished; send the same body again."""


class DeleteJobRequest(TypedDict):
    """`job.delete`: deletes the job with its long-tail queue, snapshots, ledger, quota and payloads. While
    it answers `deleting`, send the same body again. An unknown job is `deleted`.
    """

    job: str
    """Id of a job, one training run, chosen by its trainer."""

    force: NotRequired[bool]
    """Delete the job also while a round is open: the round is cancelled, and the trainer is fenced."""


class DeletePoolReply(TypedDict):
    """Reply of `pool.delete`."""

    pool: str
    """Id of a pool: one NATS token, one Redis hash tag."""

    jobs: int
    """Jobs that were deleted with it."""


class DeletePoolRequest(TypedDict):
    """`pool.delete`: deletes the pool of the subject with all its jobs, servers, settings and prompt
    memory.
    """

    force: NotRequired[bool]
    """Delete the pool also while it has servers, workers or open rounds; all users are fenced and must
    register again.
    """


class DeregisterWorkerReply(TypedDict):
    """Reply of `worker.deregister`."""

    deregistered: bool
    """False if the epoch had ended before."""


class DeregisterWorkerRequest(TypedDict):
    """`worker.deregister`: ends the epoch at once; its leases and attempts are returned."""

    workerId: str
    """Id of a worker, which holds leases and requests, chosen by the worker."""

    workerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. It is
    opaque and compared for equality only. It is random instead of counted, because a Redis that loses
    its last changes would give the same number twice.
    """


class DrainServerRequest(TypedDict):
    """`server.drain`: stops new leases and removes the server with its last lease, or at the deadline with
    all remaining ones (their holders learn it from `worker.sync`). A repeat can only make the deadline
    earlier.
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
    """Steps for which the value is still kept."""


class DropLongtailReply(TypedDict):
    """Reply of `longtail.drop`."""

    cursor: NotRequired[int]
    """Set if there are more: send the same body with this cursor."""

    stamp: str
    """State of Redis at the time of a reply: send the last one with the next call that takes a stamp."""

    dropped: list[str]
    """Groups that were dropped."""

    notQueued: list[str]
    """Groups that are not in the queue: trained, dropped before, in a round, or never submitted."""

    requests: int
    """Requests of these groups."""

    tokens: int
    """Tokens thrown away with them."""


class DropLongtailRequest(TypedDict):
    """`longtail.drop`: drops groups of the queue that will never be trained (for example prompts without
    variance): exactly one of `groupIds` and `all`. Their payloads are deleted, and they count in
    `droppedGroups`.
    """

    job: str
    """Id of a job, one training run, chosen by its trainer."""

    stamp: NotRequired[str]
    """Stamp of the last reply."""

    trainerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. It is
    opaque and compared for equality only. It is random instead of counted, because a Redis that loses
    its last changes would give the same number twice.
    """

    groupIds: NotRequired[list[str]]
    """The groups to drop; exactly one of `groupIds` and `all`."""

    all: NotRequired[Literal[True]]
    """All groups of the queue."""

    reason: str
    """Reason in the events and in the dropped groups."""

    cursor: NotRequired[int]
    """Cursor of the previous page, with `all`: groups that entered the queue after the first page stay."""


class EngineCapabilities(TypedDict):
    """Capabilities found by the probe of an engine (libs/engines). An absent capability is unknown."""

    tokenIdsIn: NotRequired[bool]
    """Accepts prompts as token ids, so resume is exact."""

    tokenIdsOut: NotRequired[bool]
    """Returns token ids."""

    logprobs: NotRequired[bool]
    """Returns log probabilities."""

    abortById: NotRequired[bool]
    """Has a route that stops a request by its id."""

    abortOnDisconnect: NotRequired[bool]
    """Stops a request whose connection is closed."""

    loadReport: NotRequired[bool]
    """Reports its load."""

    prefixCacheReset: NotRequired[bool]
    """Has a route that resets its prefix cache, which new weights require."""

    tokenize: NotRequired[bool]
    """Returns the token ids of a text, so that a text prompt can be resumed by token ids."""

    cacheSalt: NotRequired[bool]
    """Keeps cache entries apart by a salt of each request (`cacheSalt` of a lease)."""

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
    """`request.fail`: the attempt ends without completing. The recorded intent decides the next state of
    the request: after a cut `unfinished`, otherwise `pending`, or `failed` above the limits.
    `payload-full`: the quota of the job has no room for the tokens; its requests are not claimed until
    there is room. `timeout`: the sample ends for good, and its group according to `abortScope` of the
    round. The reasons `engine-error`, `engine-rejected` and, if not retryable, `payload` count as
    failures (`maxFailures` of the policy), once for each start of a server (`run.serverId`), anew after
    a further token, and not while most servers fail other prompts too; all others without a command
    count as returns (`maxReturns`). A second retryable `engine-rejected` of one start of a server fails
    the request too, unless another server of the pool has sent none. `no-server` is also the reason of
    an engine that could not serve now (429, 503, no connection).
    """

    workerId: str
    """Id of a worker, which holds leases and requests, chosen by the worker."""

    workerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. It is
    opaque and compared for equality only. It is random instead of counted, because a Redis that loses
    its last changes would give the same number twice.
    """

    requestId: str
    """Id of a request: `<job>/<groupId>/<sampleIndex>`, with `~0` for `~` and `~1` for `/` in job and
    group; unique in the pool.
    """

    attempt: str
    """Fencing number of one attempt of a request: `<number>-<random>`. The number counts the attempts for
    display; the whole text is compared. `0` for a request that was never claimed.
    """

    generatedMs: NotRequired[int]
    """Generation time of the attempt, milliseconds; for a sample with `timeoutMs`."""

    reason: FailReason
    """Why the attempt ends."""

    retryable: bool
    """False: a retry cannot help (the engine refused the request)."""

    message: NotRequired[str]
    """Message text."""

    segment: NotRequired[Segment]
    """Tokens generated so far, which are kept."""

    missingRef: NotRequired[str]
    """With the reason `payload`: reference of a segment of the claim that is missing in the payload store.
    Its tokens are generated again.
    """

    lostTokens: NotRequired[int]
    """Tokens of this attempt that could not be stored; the tokens after the last partial save count as
    waste.
    """

    run: NotRequired[AttemptRun]
    """Server and times of the attempt, for the timeline of the round; absent if it had no server."""


class FenceServerReply(TypedDict):
    """Reply of `server.fence`."""

    serverId: str
    """Id of a server (one engine with its address), chosen by the caller that registers it."""

    epoch: str
    """Epoch of the server."""

    state: ServerState
    """State of the server."""

    changed: bool
    """False if that epoch is not the current one."""


class FenceServerRequest(TypedDict):
    """`server.fence`: expires the epoch of a server as if its engine had failed, for an engine that does
    not stop aborted requests. Its leases and sessions expire, and late releases change nothing; it
    stays `failed` until it registers with another instanceId.
    """

    serverId: str
    """Id of a server (one engine with its address), chosen by the caller that registers it."""

    epoch: str
    """The epoch to expire; another current epoch stays."""

    reason: NotRequired[str]
    """Text for the log and the event."""


class FindPoolReply(TypedDict):
    """Reply of `pool.find`."""

    known: bool
    """The load-balancer that replies serves the pool, or the pool has state in Redis."""

    pools: list[str]
    """Pools that it serves by name, and pools with state in Redis: the first 128 in order of their names."""


class FindPoolRequest(TypedDict):
    """`pool.find`: whether there is a pool. It is also answered where no service serves the pool of the
    caller.
    """

    name: str
    """Name of the pool."""


class FinishSessionReply(TypedDict):
    """Reply of `lb.finish-session`."""

    finished: bool
    """False when there was no such session."""


class FinishSessionRequest(TypedDict):
    """`lb.finish-session`: forgets the session of a finished trajectory; idempotent, does not release
    leases.
    """

    sessionId: str
    """The session."""


class GetLeaseRequest(TypedDict):
    """`lb.lease`: one live lease. Errors: LEASE_NOT_FOUND."""

    leaseId: str
    """Id of a lease, `<sequence>.<acquireId>`: the sequence fences a lease against a later one of the same
    acquireId.
    """


class GetPayloadReply(TypedDict):
    """Reply of `payload.get`."""

    bytes: int
    """Size of the whole payload, bytes."""

    chunkCount: int
    """Chunks of the whole payload."""

    data: str
    """base64"""

    chunkIndex: int
    """Index of this chunk, from 0."""


class GetPayloadRequest(TypedDict):
    """`payload.get`: one chunk."""

    ref: str
    """Reference of the payload."""

    chunkIndex: NotRequired[int]
    """Index of the chunk, from 0."""


class GetReadinessRequest(TypedDict):
    """`service.readiness`: reads whether each replica that serves the pool can work, and why not. Each
    replica replies.
    """


class GetRequestRequest(TypedDict):
    """`request.get`: one request in any state, with its segments. REQUEST_NOT_FOUND, also after its round
    was folded.
    """

    requestId: str
    """Id of a request: `<job>/<groupId>/<sampleIndex>`, with `~0` for `~` and `~1` for `/` in job and
    group; unique in the pool.
    """


class GetServerRequest(TypedDict):
    """`server.get`: one server. SERVER_NOT_FOUND."""

    serverId: str
    """Id of a server (one engine with its address), chosen by the caller that registers it."""


class GrantedItem(TypedDict):
    """A granted acquire; a refused one has `error`."""

    acquireId: str
    """Id of the acquire, from the request."""

    leaseId: str
    """Id of a lease, `<sequence>.<acquireId>`: the sequence fences a lease against a later one of the same
    acquireId.
    """

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
    """Name of the weights of the server for its prefix cache: no other weights have it. Whoever calls the
    engine adds it to `cache_salt` (vLLM) or `extra_key` (SGLang), so that no cache entry of other
    weights is used. Absent if the engine has no salts.
    """


class GroupDroppedEvent(TypedDict):
    """A group was dropped."""

    type: Literal["group.dropped"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool it happened in."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    job: str
    """The job."""

    roundId: str
    """The round."""

    groupId: str
    """The group."""

    abortId: NotRequired[str]
    """The abort that dropped it, if one did."""

    reason: NotRequired[str]
    """Reason given by the caller, if any."""


class GroupFailedEvent(TypedDict):
    """A group failed: one of its requests failed for good."""

    type: Literal["group.failed"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool it happened in."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    job: str
    """The job."""

    roundId: str
    """The round."""

    groupId: str
    """The group."""

    reason: NotRequired[str]
    """Why its sample failed, as in `request.fail`; `lost`: Redis has lost a part of it."""


class GroupResult(TypedDict):
    """One accepted group."""

    groupId: str
    """Id of a group, one prompt with its samples, unique in its job, chosen by its trainer."""

    cuts: int
    """Number of its cuts."""

    firstStep: int
    """Step in which it was first submitted."""

    domain: NotRequired[str]
    """Domain it was submitted with, if any."""

    promptRef: str
    """Reference of its prompt."""

    excluded: NotRequired[Literal[True]]
    """The group is not trained, as its rewards are equal."""

    samples: list[SampleResult]
    """Samples of the group."""

    more: NotRequired[bool]
    """The page ends within this group; its other samples are in the next page."""

    digest: NotRequired[str]
    """Digest of the samples and their segments; absent while `more`. If it is the same in a later read,
    the payloads need not be fetched again.
    """


class GroupRewards(TypedDict):
    """Rewards of one accepted group."""

    groupId: str
    """Id of a group, one prompt with its samples, unique in its job, chosen by its trainer."""

    rewards: list[float]
    """One for each sample of its results, in any order; finite numbers."""


class GroupStatus(TypedDict):
    """One group of a round."""

    groupId: str
    """Id of a group, one prompt with its samples, unique in its job, chosen by its trainer."""

    cuts: int
    """Number of its cuts."""

    firstStep: int
    """Step in which it was first submitted."""

    finishedSamples: int
    """Samples that are finished."""

    samples: int
    """Samples it needs."""

    tokens: int
    """Tokens of its samples."""

    state: str
    """`live`, `accepted`, `leaving` (cut, not in the queue yet), or its end."""

    liveSamples: int
    """Samples that are pending, claimed, running or cutting."""

    isHeld: NotRequired[Literal[True]]
    """The group is finished and has no place in the round."""

    reason: NotRequired[str]
    """Why it ended, with the set `lost`: the reason of the failed attempt (`engine-rejected`), the reason
    of the abort or drop, `timeout`, or `lost` (Redis has lost a part of it).
    """

    message: NotRequired[str]
    """Message of the failed attempt, at most 300 bytes; with the set `lost`."""

    requestId: NotRequired[str]
    """The sample that it ended for, if it was one; with the set `lost`."""

    promptRef: NotRequired[str]
    """Reference of its prompt; with the set `lost`."""

    atMs: NotRequired[int]
    """When it ended, milliseconds since 1970; with the set `lost`."""


class GroupSubmission(TypedDict):
    """One prompt with its samples."""

    groupId: str
    """Id of the group, unique in its job."""

    samples: int
    """Number of samples to train."""

    minSamples: NotRequired[int]
    """Smallest number of samples to train if others are lost for good: aborted, timed out, or failed. The
    group waits for all samples that can still finish, up to `samples`. Default: `samples`.
    """

    prompt: NotRequired[Prompt]
    """The prompt inline, at most 32 kB; or promptRef."""

    promptRef: NotRequired[str]
    """Reference of the prompt, stored before by `payload.put`; or prompt."""

    maxTokens: int
    """Token budget of each sample. If all engines of the pool report their context, a budget that does not
    fit beside a prompt of `promptTokenIds` is clipped to it; a prompt that can never fit is refused
    (`CONTEXT_TOO_LONG`). For other prompts, workers clip the budget to the room that the engine reports
    in its context; the response then ends with `length`.
    """

    timeoutMs: NotRequired[int]
    """Maximum generation time of a sample over all its attempts, milliseconds. Waiting for a worker or a
    server does not count, nor does the time of tokens that a policy has thrown away. A sample that
    takes longer ends as by an abort in the `abortScope` of its round. Default: none.
    """

    sampling: NotRequired[SamplingParameters]
    """Sampling parameters of all its samples, at most 4 kB of JSON."""

    domain: NotRequired[str]
    """Domain of the prompt, for `domainQuotas`, over-provision and long-tail statistics."""

    promptId: NotRequired[str]
    """Id of the prompt in the prompt memory, the same in every pass over the data and every job; default:
    its contents or promptRef.
    """


class HeldItem(TypedDict):
    """A lease or an attempt of a worker."""

    id: str
    """leaseId, or requestId."""

    attempt: NotRequired[str]
    """Set with a requestId."""

    sinceMs: int
    """Time of the grant or claim, milliseconds since 1970."""


class JobLedgerReply(TypedDict):
    """Reply of `job.ledger`."""

    summary: LedgerSummary
    """Cost of the policy."""

    lengthBiasSoFar: NotRequired[float]
    """`lengthBias` of all steps up to `roundId`; absent without it. A round that trains groups which
    earlier rounds have cut is compared with these earlier rounds. So under an unbiased policy this
    value approaches 1, while the length bias of a single round does not.
    """

    alarms: list[LedgerAlarm]
    """Bounds of the last policy of the job (`alarms`) that are nearly reached or exceeded."""


class JobLedgerRequest(TypedDict):
    """`job.ledger`: the cost of the tail policy over all steps of a job or in one of its last rounds."""

    job: str
    """Id of a job, one training run, chosen by its trainer."""

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
    """The trainer of a job has named the groups it trained (`job.reconcile`), up to the end of one step."""

    type: Literal["job.reconciled"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool it happened in."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    job: str
    """The job."""

    step: int
    """The step, from 1."""

    trainedGroups: int
    """Groups of the last page that were not counted as trained before."""


class JobRestoredEvent(TypedDict):
    """A job returns to a snapshot."""

    type: Literal["job.restored"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool it happened in."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    job: str
    """The job."""

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
    """Requests of these groups."""

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
    """Pool it happened in."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    job: str
    """The job."""


class JobStatus(TypedDict):
    """State of a job."""

    trainerEpoch: str
    """Epoch of the trainer of the job; send it with every later call of the trainer."""

    stepsTrained: int
    """Steps trained (rounds closed)."""

    submittedGroups: int
    """Groups ever submitted: the trainer's position in its data."""

    stamp: str
    """State of Redis at the time of a reply: send the last one with the next call that takes a stamp."""

    job: str
    """Id of a job, one training run, chosen by its trainer."""

    trainedGroups: int
    """Groups trained."""

    excludedGroups: int
    """Accepted groups that were not trained, as their rewards were equal; their requests are `dropped`."""

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
    """Id of a job, one training run, chosen by its trainer."""

    stamp: NotRequired[str]
    """Stamp of the last reply."""


class JobTakenOverEvent(TypedDict):
    """Another trainer has taken a job over."""

    type: Literal["job.taken-over"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool it happened in."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    job: str
    """The job."""


class KnownPrompt(TypedDict):
    """Known response lengths of a prompt, for example from an earlier run."""

    promptId: str
    """Id of the prompt in the prompt memory."""

    lengths: list[int]
    """Lengths of its responses, tokens."""

    atCap: NotRequired[bool]
    """All of them ended at their token budget."""


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
    """Name of the weights of the server for its prefix cache: no other weights have it. Whoever calls the
    engine adds it to `cache_salt` (vLLM) or `extra_key` (SGLang), so that no cache entry of other
    weights is used. Absent if the engine has no salts.
    """

    leaseId: str
    """Id of a lease, `<sequence>.<acquireId>`: the sequence fences a lease against a later one of the same
    acquireId.
    """

    serverId: str
    """Id of a server (one engine with its address), chosen by the caller that registers it."""

    dpRank: NotRequired[int]
    """Data-parallel rank of the session on this server."""

    decision: Decision
    """How the server was chosen."""


class LeaseHolder(TypedDict):
    """A live worker epoch with leases on the server, which is asked for a sync."""

    workerId: str
    """Id of a worker, which holds leases and requests, chosen by the worker."""

    workerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. It is
    opaque and compared for equality only. It is random instead of counted, because a Redis that loses
    its last changes would give the same number twice.
    """

    leases: int
    """Leases of the worker in this page."""


class LeaseStatus(TypedDict):
    """One live lease."""

    leaseId: str
    """Id of a lease, `<sequence>.<acquireId>`: the sequence fences a lease against a later one of the same
    acquireId.
    """

    requestId: str
    """Request that the acquire named."""

    attempt: NotRequired[str]
    """Attempt of the acquire, if any."""

    serverId: str
    """Id of a server (one engine with its address), chosen by the caller that registers it."""

    serverEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. It is
    opaque and compared for equality only. It is random instead of counted, because a Redis that loses
    its last changes would give the same number twice.
    """

    workerId: str
    """Id of a worker, which holds leases and requests, chosen by the worker."""

    workerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. It is
    opaque and compared for equality only. It is random instead of counted, because a Redis that loses
    its last changes would give the same number twice.
    """

    sessionId: NotRequired[str]
    """Session of the acquire, if any."""

    groupId: NotRequired[str]
    """Group of the acquire, if any."""

    ageMs: int
    """Time since the grant."""


class LedgerAlarm(TypedDict):
    """A bound that is nearly reached or exceeded."""

    bound: Literal["lengthBias", "truncatedShare", "offPolicyShare", "versionSpan", "wasteShare", "batchVariation", "cutsPerGroup"]
    """Name of the bound."""

    value: float
    """The value now."""

    limit: float
    """The bound."""

    state: Literal["near", "over"]
    """`near`: above 80 % of the bound."""


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
    """Standard deviation / mean of the steps' mean lengths."""

    cutsPerGroup: NotRequired[int]
    """How often a trained group was cut."""


class LedgerSummaryWaste(TypedDict):
    """Tokens that were thrown away."""

    tokens: int
    """How many."""

    share: float
    """Share of all generated tokens."""

    byReason: dict[str, int]
    """How many, by reason."""


class LedgerSummaryTrainedByKind(TypedDict):
    """Trained samples by the kind of their round, from exact lengths: shows the effect of tail steps on
    length and truncation.
    """

    short: TrainedPart
    """Samples of rounds that are mostly new prompts."""

    long: TrainedPart
    """Samples of rounds from the long-tail queue."""


class LedgerSummaryExcluded(TypedDict):
    """Accepted groups that were not trained, as their rewards were equal. `lengthBias` and `acceptance`
    count their samples as trained: it was not the tail policy that chose against them.
    """

    groups: int
    """Groups."""

    samples: int
    """Their samples."""


class LedgerSummaryReconciled(TypedDict):
    """Groups and samples that `job.reconcile` counted as trained because Redis had lost them. Their
    lengths are unknown, so they are in no other field; with `trained.samples` they are all trained
    requests of the job.
    """

    groups: int
    """Groups."""

    samples: int
    """Their samples."""


class LedgerSummary(TypedDict):
    """Summary of a ledger. Shares are 0 to 1."""

    trained: LengthSummary
    """Samples that were trained."""

    admitted: LengthSummary
    """All started samples, a Kaplan-Meier estimate because some were cut. A sample that is drawn again
    counts each time, but only its last draw is observed to its end. These are the hard prompts, so if
    tokens are thrown away the estimate is some percent too high and the bias some points too low:
    alarms come too early, never too late.
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
    """Standard deviation / mean of the steps' mean lengths."""

    cutsPerGroup: MeanAndMax
    """How often trained groups were cut."""

    lengths: list[LengthRange]
    """Samples by length, four ranges to each doubling; ranges without samples are left out."""

    acceptance: list[Acceptance]
    """Share of samples that were trained, by length."""

    excluded: LedgerSummaryExcluded
    """Accepted groups that were not trained, as their rewards were equal. `lengthBias` and `acceptance`
    count their samples as trained: it was not the tail policy that chose against them.
    """

    reconciled: LedgerSummaryReconciled
    """Groups and samples that `job.reconcile` counted as trained because Redis had lost them. Their
    lengths are unknown, so they are in no other field; with `trained.samples` they are all trained
    requests of the job.
    """


class LengthRange(TypedDict):
    """Started samples of one range of lengths."""

    fromTokens: float
    """Shortest length of the range."""

    toTokens: float
    """End of the range, exclusive."""

    finished: int
    """Samples that ended here."""

    unfinished: int
    """Samples that have not ended and have this length so far, and samples that were cut at it."""


class LengthSummary(TypedDict):
    """Lengths of samples, tokens."""

    samples: int
    """How many."""

    meanTokens: float
    """Mean, approximate: up to 1.6 % off."""

    p50Tokens: float
    """Median, approximate: up to 3.2 % below the exact one, and never above the longest sample."""

    p99Tokens: float
    """99th percentile, approximate as the median."""

    capShare: float
    """Share that ended at the token budget."""


class ListGroupsReply(TypedDict):
    """Reply of `group.list`."""

    cursor: NotRequired[int]
    """Set if there are more: send the same body with this cursor."""

    groups: list[GroupStatus]
    """The groups of the page."""


class ListGroupsRequest(TypedDict):
    """`group.list`: one page of the groups of a round that is not folded. Errors: JOB_NOT_FOUND,
    ROUND_NOT_FOUND.
    """

    job: str
    """Id of a job, one training run, chosen by its trainer."""

    roundId: NotRequired[str]
    """Default: the round that is not closed, or the last one."""

    set: NotRequired[Literal["live", "accepted", "failed", "lost"]]
    """Which groups. `live`: not accepted yet, in the order of their arrival. `accepted`: accepted groups.
    `failed`: groups with a request that failed for good. `lost`: all groups that ended without training
    since the last round was completed, failed or dropped, with the reason. Until the round is folded,
    and at most the last 16,384.
    """

    cursor: NotRequired[int]
    """Cursor of the previous page."""


class ListJobsReply(TypedDict):
    """Reply of `job.list`."""

    cursor: NotRequired[str]
    """Send this for the next page; absent on the last page."""

    jobs: list[str]
    """The jobs, sorted within the page."""


class ListJobsRequest(TypedDict):
    """`job.list`: one page of the jobs of the pool."""

    cursor: NotRequired[str]
    """Cursor of the previous page."""

    openOnly: NotRequired[bool]
    """Only jobs with a round that is not closed."""


class ListLeasesReply(TypedDict):
    """Reply of `lb.leases`."""

    cursor: NotRequired[str]
    """Send this for the next page; absent on the last page."""

    leases: list[LeaseStatus]
    """The leases, oldest first within the page."""


class ListLeasesRequest(TypedDict):
    """`lb.leases`: one page of the leases of the current epoch of a server, of the live epoch of a worker,
    or of the pool. Errors: SERVER_NOT_FOUND, WORKER_NOT_FOUND; VALIDATION_FAILED for both selectors at
    once.
    """

    cursor: NotRequired[str]
    """Cursor of the previous page."""

    serverId: NotRequired[str]
    """Only leases on the current epoch of this server."""

    workerId: NotRequired[str]
    """Only leases of the live epoch of this worker."""


class ListRequestsReply(TypedDict):
    """Reply of `request.list`."""

    cursor: NotRequired[str]
    """Send this for the next page; absent on the last page."""

    requests: list[RequestStatus]
    """The requests of the page, unordered."""


class ListRequestsRequest(TypedDict):
    """`request.list`: one page of the requests that have not ended, of a round of a job or of a worker:
    exactly one of `job` and `workerId`. Errors: JOB_NOT_FOUND, ROUND_NOT_FOUND, WORKER_NOT_FOUND.
    """

    cursor: NotRequired[str]
    """Cursor of the previous page."""

    job: NotRequired[str]
    """The job whose round is listed."""

    roundId: NotRequired[str]
    """With `job`; default: the round that is not closed, or the last one."""

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
    """`round.list`: the rounds of a job that have summaries, latest step first: the last 16 rounds and all
    rounds that are not folded yet.
    """

    job: str
    """Id of a job, one training run, chosen by its trainer."""


class ListServersReply(TypedDict):
    """Reply of `server.list`."""

    cursor: NotRequired[str]
    """Send this for the next page; absent on the last page."""

    servers: list[ServerStatus]
    """The servers of the page."""


class ListServersRequest(TypedDict):
    """`server.list`: one page of servers."""

    cursor: NotRequired[str]
    """Cursor of the previous page."""


class ListSessionsReply(TypedDict):
    """Reply of `lb.sessions`."""

    cursor: NotRequired[str]
    """Send this for the next page; absent on the last page."""

    sessions: list[SessionStatus]
    """The sessions of the page, unordered."""


class ListSessionsRequest(TypedDict):
    """`lb.sessions`: one page of the sessions."""

    cursor: NotRequired[str]
    """Cursor of the previous page."""

    serverId: NotRequired[str]
    """Only sessions that are bound to this server."""


class ListSnapshotsReply(TypedDict):
    """Reply of `job.snapshots`."""

    job: str
    """Id of a job, one training run, chosen by its trainer."""

    snapshots: list[JobSnapshotStatus]
    """Complete snapshots, oldest first."""

    saving: NotRequired[str]
    """Tag of an incomplete snapshot."""

    restoring: NotRequired[str]
    """Tag of an unfinished restore: repeat `job.restore`."""


class ListSnapshotsRequest(TypedDict):
    """`job.snapshots`: lists the snapshots that can be restored, oldest first."""

    job: str
    """Id of a job, one training run, chosen by its trainer."""


class ListWorkersReply(TypedDict):
    """Reply of `worker.list`."""

    cursor: NotRequired[str]
    """Send this for the next page; absent on the last page."""

    workers: list[WorkerStatus]
    """The workers, longest silence first within the page."""


class ListWorkersRequest(TypedDict):
    """`worker.list`: one page of the live worker epochs."""

    cursor: NotRequired[str]
    """Cursor of the previous page."""


class LoadBalancerStatus(TypedDict):
    """Totals of a pool."""

    pool: str
    """The pool."""

    paused: bool
    """The pool is paused (`pool.pause`)."""

    pausedUntilMs: NotRequired[int]
    """End of a pause with a deadline, time of Redis, milliseconds."""

    setBackAtMs: NotRequired[int]
    """When Redis was last restarted or set back, time of Redis, milliseconds: changes just before may be
    lost. Absent: never, as far as the pool knows.
    """

    servers: int
    """Registered servers."""

    readyServers: int
    """Servers that take leases."""

    leases: int
    """Live leases."""

    sessions: int
    """Sessions bound to a server."""

    sessionsEvicted: int
    """Idle sessions forgotten so far, by age or because the limit was reached."""

    slowScans: int
    """Choices so far that examined more than 128 servers."""

    waiters: int
    """Acquires that wait for room."""

    workers: int
    """Live worker epochs."""

    expiredEpochs: int
    """Worker and server epochs whose leases are still being returned."""

    perServer: list[ServerTotals]
    """The first page of servers; `server.list` returns all."""


class LoadBalancerStatusRequest(TypedDict):
    """`lb.status`: totals of the pool and the first page of servers."""


class LogLevelReply(TypedDict):
    """Reply of one replica."""

    app: str
    """Name of its service."""

    replicaId: str
    """Id of the replica."""

    level: LogLevel
    """The level that it writes now."""


class LongtailGroup(TypedDict):
    """One group of the long-tail queue."""

    groupId: str
    """Id of a group, one prompt with its samples, unique in its job, chosen by its trainer."""

    cuts: int
    """Number of its cuts."""

    firstStep: int
    """Step in which it was first submitted."""

    finishedSamples: int
    """Samples that are finished."""

    samples: int
    """Samples it needs."""

    tokens: int
    """Tokens of its samples."""


class LongtailListReply(TypedDict):
    """Reply of `longtail.list`."""

    cursor: NotRequired[int]
    """Set if there are more: send the same body with this cursor."""

    groups: list[LongtailGroup]
    """The page, oldest first."""


class LongtailListRequest(TypedDict):
    """`longtail.list`: one page of the queue, oldest first."""

    job: str
    """Id of a job, one training run, chosen by its trainer."""

    cursor: NotRequired[int]
    """Cursor of the previous page."""


class LongtailRequeuedEvent(TypedDict):
    """A group went to the long-tail queue."""

    finishedSamples: int
    """Samples that are finished."""

    samples: int
    """Samples it needs."""

    type: Literal["longtail.requeued"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool it happened in."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    job: str
    """The job."""

    roundId: str
    """The round."""

    groupId: str
    """The group."""


class LongtailStats(TypedDict):
    """Size of a long-tail queue."""

    groups: int
    """Groups of the queue."""

    settlingGroups: int
    """Cut groups that are not in the queue yet."""


class LongtailStatsRequest(TypedDict):
    """`longtail.stats`"""

    job: str
    """Id of a job, one training run, chosen by its trainer."""


class MeanAndMax(TypedDict):
    """Mean and maximum."""

    mean: float
    """The mean."""

    max: float
    """The largest."""


class MoveLeasesCommand(TypedDict):
    """`worker.<workerId>.move`, sent to a caller that only routes: end these calls with their tokens, move
    their leases with `lb.transfer`, and continue on the new servers. Release a call that ends before as
    usual. The command is repeated until the lease has moved or ended, or until the deadline.
    """

    workerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. It is
    opaque and compared for equality only. It is random instead of counted, because a Redis that loses
    its last changes would give the same number twice.
    """

    planId: str
    """The plan of the moves."""

    leases: list[MovedLease]
    """The leases."""


class MoveStatus(TypedDict):
    """A move of a plan with its state."""

    requestId: NotRequired[str]
    """The request to move."""

    attempt: NotRequired[str]
    """The running attempt."""

    fromServerId: NotRequired[str]
    """The server it runs on."""

    fromEpoch: NotRequired[str]
    """Epoch of that server."""

    toServerId: str
    """The target server."""

    toEpoch: NotRequired[str]
    """Epoch of the target server."""

    purpose: NotRequired[Literal["leave", "tier", "wait"]]
    """Reason: `leave`: its server is drained; `tier`: for a smaller batch tier; `wait`: it does not wait
    on the target.
    """

    means: NotRequired[MoveMeans]
    """How the context gets to the new server: there was no cache (`bind`), it is computed again
    (`recompute`), or it is read from the KV store that both servers share (`transfer`).
    """

    costSeconds: NotRequired[float]
    """Cost: engine time of the new server, seconds."""

    gainSeconds: NotRequired[float]
    """Share of the move in the gain of its plan, seconds; `tier` moves have equal shares, because they
    gain only together.
    """

    leaseId: NotRequired[str]
    """The lease, for a caller that only routes."""

    state: MoveState
    """State of the change."""

    refusal: NotRequired[MoveRefusal]
    """Why the move was refused, if it was."""

    times: NotRequired[MoveTimes]
    """Times of the move, once it has its first token on the new server."""


class MoveTimes(TypedDict):
    """Times of a move that has its first token on the new server."""

    stopMs: int
    """From the command to the end of the old attempt, milliseconds; 0 for a request that nobody ran."""

    placeMs: int
    """Until a worker has claimed the request again, milliseconds."""

    resumeMs: int
    """Until the new attempt has its lease and is sent to the engine, milliseconds."""

    firstTokenMs: int
    """Until its first token, milliseconds: the prefill, or the transfer from the KV store."""


class MovedLease(TypedDict):
    """A lease to move to another server."""

    targetServerId: str
    """The target server."""

    targetEpoch: NotRequired[str]
    """Only if this is the current epoch of the target."""

    leaseId: str
    """Id of a lease, `<sequence>.<acquireId>`: the sequence fences a lease against a later one of the same
    acquireId.
    """


class NextRoundReply(TypedDict):
    """Reply of `round.next`."""

    stamp: str
    """State of Redis at the time of a reply: send the last one with the next call that takes a stamp."""

    planId: str
    """Id of the plan: it contains the state that the plan was made for, and fences `round.open`."""

    step: int
    """Training step of the round, from 1."""

    kind: Union[RoundKind, Literal["done"]]
    """Kind of the round; `done`: no groups are left to train."""

    neededGroups: int
    """Groups the step trains."""

    newGroups: int
    """New groups to submit."""

    takeGroups: int
    """Groups `round.open` takes from the long-tail queue."""

    newByDomain: NotRequired[dict[str, int]]
    """New groups to submit, by domain, '' for groups without one; only with `domainQuotas`."""

    choice: NotRequired[TailChoice]
    """The choice of an adaptive policy; absent without one."""


class NextRoundRequest(TypedDict):
    """`round.next`: returns the plan of the next round; every step trains exactly its groups. Changes no
    round.
    """

    job: str
    """Id of a job, one training run, chosen by its trainer."""

    stamp: NotRequired[str]
    """Stamp of the last reply."""

    groupsPerStep: int
    """Groups of one training step."""

    remainingGroups: int
    """Groups of the data set that were never submitted."""

    remainingByDomain: NotRequired[dict[str, int]]
    """Groups that were never submitted, by domain, '' for groups without one; required with
    `domainQuotas`.
    """

    policy: TailPolicy
    """Tail policy of the round."""

    trainerEpoch: NotRequired[str]
    """Epoch of an earlier open or takeover; a trainer that was taken over gets `FENCED`."""


class OpenRoundReply(TypedDict):
    """Reply of `round.open`."""

    roundId: str
    """Id of a round of a job, chosen by its trainer."""

    trainerEpoch: str
    """Epoch of its trainer, which every call of the trainer has."""

    state: RoundState
    """State of the round."""

    takenGroups: int
    """Groups taken from the long-tail queue."""

    stamp: str
    """State of Redis at the time of a reply: send the last one with the next call that takes a stamp."""


class OpenRoundRequest(TypedDict):
    """`round.open`: opens a round and takes its groups from the long-tail queue; idempotent by planId."""

    job: str
    """Id of a job, one training run, chosen by its trainer."""

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
    """New groups that will be submitted; together with takeGroups at least neededGroups."""

    policy: TailPolicy
    """Tail policy of the round, as for the plan."""

    weightVersion: NotRequired[int]
    """Weight version of the pool (default): the last committed version, otherwise the version that its
    servers report. Any other is refused (`WEIGHT_VERSION_MISMATCH`). Segments have the version of their
    engine.
    """

    trainerEpoch: NotRequired[str]
    """Epoch of an earlier open or takeover; absent for the first round of a job."""

    orphanAfterMs: NotRequired[int]
    """Silence of the trainer after which claims stop, milliseconds."""

    abortScope: NotRequired[AbortScope]
    """Scope of an abort or timeout of one request: the whole `group`, or only the `sample` while its group
    has `minSamples` others.
    """

    priority: NotRequired[int]
    """Priority of its requests among waiting acquires of the pool, from 0 (lowest) to 9. Workers claim by
    the weights of jobs, not by priority.
    """

    workerKind: NotRequired[str]
    """Kind of the workers that may claim requests of the job, for example `agent`: the workers that send
    this kind with `request.claim`. Counts until the next `round.open` of the job. Default: built-in
    workers, which send none.
    """


class OverProvisionWhy(TypedDict):
    """How an adaptive over-provision was computed; lengths in tokens, times in the unit of the fit (tokens
    without a fit).
    """

    groups: int
    """Groups in the estimate."""

    censored: int
    """Groups in the estimate that were cut before their end (censored)."""

    kneeTokens: NotRequired[float]
    """A short round ends when all but the tail are done: groups longer than this are its tail."""

    tailShare: NotRequired[float]
    """Share of groups that have a sample beyond the knee."""

    wanted: NotRequired[float]
    """Value of the model, before damping and limits."""

    shortRoundTime: NotRequired[float]
    """Expected time of a short round."""

    longRoundTime: NotRequired[float]
    """Expected time of a long round."""

    limitedBy: NotRequired[Literal["too-few", "damping", "cap", "kv"]]
    """Limit of the value: too few lengths, the change of 1/16, the highest value, the KV caches."""


class PausePoolReply(TypedDict):
    """Reply of `pool.pause`."""

    paused: bool
    """The pool is paused now."""

    changed: bool
    """False if the pool was already in this state."""


class PausePoolRequest(TypedDict):
    """`pool.pause`: stops leases and claims until `pool.resume`. Acquires and claims are answered
    POOL_PAUSED: at once, or after their `waitMs`.
    """

    deadlineMs: NotRequired[int]
    """Time after which the pause ends and engines are resumed, milliseconds; a repeat begins it again.
    Absent: the pause has no end but `pool.resume`. A pause without this time stays one.
    """


class PlanRebalanceRequest(TypedDict):
    """`rebalance.plan`: makes a plan and stores it for an hour without moving requests. A repeat gets the
    same plan.
    """

    planId: str
    """Id of the plan."""

    limit: NotRequired[int]
    """Maximum moves in the page."""

    policy: NotRequired[RebalancePolicy]
    """Policy to use instead of the policy of the settings."""

    tiers: NotRequired[list[int]]
    """Batch tiers to use instead of the tiers of the settings, strictly descending."""


class PoolHistoryReply(TypedDict):
    """Reply of `pool.history`."""

    versions: list[PoolVersion]
    """Latest first; the first one is in force."""


class PoolHistoryRequest(TypedDict):
    """`pool.history`: the last 32 versions of the settings, latest first."""


class PoolLedgerReply(TypedDict):
    """Reply of `pool.ledger`."""

    summary: LedgerSummary
    """Costs over all samples together; `batchVariation` compares the steps of all jobs with each other."""

    jobs: int
    """Number of jobs in the summary."""


class PoolLedgerRequest(TypedDict):
    """`pool.ledger`: the cost of the tail policies of all jobs of the pool, over all their steps. The
    reply adds up the ledgers of all jobs (`job.ledger`), so a job that is deleted takes its part with
    it.
    """


class PoolSetBackEvent(TypedDict):
    """Redis was restarted or set back: the last changes of the pool may be lost, and events with the last
    numbers too.
    """

    type: Literal["pool.set-back"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool it happened in."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""


class PoolSettings(TypedDict):
    """Settings of a pool, which can be changed while it runs. All replicas use them from the next call on."""

    policy: NotRequired[RoutingPolicy]
    """Default `least-inflight`."""

    affinityBreakMargin: NotRequired[Union[int, Literal["never"]]]
    """A session leaves its server if that has more leases than the server that the policy would choose,
    plus this margin: 0 to 1,000,000. `never` (the default): it stays under any load.
    """

    affinityBreakMaxContextTokens: NotRequired[int]
    """An acquire with more `contextTokens` than this stays, because another prefill would cost more. Unset
    = no limit.
    """

    groupPlacement: NotRequired[GroupPlacement]
    """Default `group-spread`."""

    groupAffinityCap: NotRequired[int]
    """Maximum leases of one group on one server with affinity; further leases go to other servers. Default
    8.
    """

    groupSpreadBelowTokens: NotRequired[int]
    """`auto` spreads siblings with fewer `contextTokens` than this. Default 2,048."""

    groupSpreadAboveKvUse: NotRequired[float]
    """`auto` spreads away from a server that reported a KV use above this, 0 to 1. Default 0.7."""

    sessionIdleMs: NotRequired[int]
    """Idle time after which a session is forgotten, milliseconds. Default: SESSION_IDLE_MS of the
    load-balancer.
    """

    maxSessions: NotRequired[int]
    """Maximum sessions; above it the session that was idle longest is forgotten. Default 200,000."""

    decisionSampleEvery: NotRequired[int]
    """Every n-th decision is stored with its full snapshot. Default 1,000."""

    poolMaxInflight: NotRequired[int]
    """Maximum leases of the whole pool. Unset = the sum of its servers."""

    requiredWeightVersion: NotRequired[int]
    """A server that reports another weight version is `quarantined` until it reports this one. Unset = any
    version.
    """

    slowStartMs: NotRequired[int]
    """Time in which a new or restarted server reaches its capacity, milliseconds. Default 0 = at once."""

    slowStartFraction: NotRequired[float]
    """Share of its capacity with which a server in slow start begins. Default 0.1; at least one lease."""

    breakerFailures: NotRequired[int]
    """Number of consecutive failed calls (released as `failed`: a broken stream, 500) that make a server
    suspect although it answers probes, unless fewer than half of the servers would be left. 0 = off.
    Default 5.
    """

    breakerOpenMs: NotRequired[int]
    """How long the server is then suspect, milliseconds; after that it gets one call first. Default
    10,000.
    """

    adaptiveConcurrency: NotRequired[Literal[0, 1]]
    """1 = the capacity of each server follows its load reports. Default 0 = off."""

    adaptIntervalMs: NotRequired[int]
    """Pause between two changes of a server's capacity, milliseconds. Default 2,000."""


class PoolSettingsReply(TypedDict):
    """Reply of `pool.configure`."""

    version: int
    """Version of the settings, increased by 1 with each change."""

    settings: PoolSettings
    """The settings that were set; all others have their defaults."""

    policy: RoutingPolicy
    """The active policy."""

    nextPolicy: NotRequired[RoutingPolicy]
    """The policy that becomes active when every server is scored for it."""


class PoolSettingsRequest(TypedDict):
    """`pool.settings`: returns the settings of the pool."""


class PoolVersion(TypedDict):
    """The settings of a pool from one change to the next."""

    version: int
    """Version of the settings, increased by 1 with each change."""

    settings: PoolSettings
    """The settings that were set; all others have their defaults."""

    sinceMs: int
    """When it began, milliseconds since 1970."""


class Prompt(TypedDict):
    """Contents of a prompt payload: exactly one of text, messages and promptTokenIds."""

    text: NotRequired[str]
    """The prompt as a text, which the engine tokenizes; not empty."""

    messages: NotRequired[list[ChatMessage]]
    """The prompt as a chat, to which the engine applies its template; not empty."""

    promptTokenIds: NotRequired[list[int]]
    """The prompt as token ids, each at least 0 and below 2^31; not empty."""

    engineFields: NotRequired[dict[str, Any]]
    """Further fields of the engine's request, passed on unread: `tools`, `lora_path`, `image_data`,
    `return_routed_experts`. Fields that Broomwagon sets are refused: prompt, budget, ids, streaming,
    `n`. Further fields of the response are in `engineFields` of the segments.
    """


class PromptLengths(TypedDict):
    """Expected response length of one prompt."""

    capShare: float
    """Share that ended at the token budget."""

    promptId: str
    """Id of the prompt in the prompt memory."""

    samples: int
    """Number of known lengths, up to 64; above it older lengths count less."""

    medianTokens: float
    """Median length of its responses, tokens."""

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
    """Set when all chunks are stored."""

    receivedChunks: int
    """Number of stored chunks."""


class PutPayloadRequest(TypedDict):
    """`payload.put`: stores one chunk of at most 256 kB; the reply to the last chunk contains the
    reference. Safe to repeat.
    """

    job: str
    """The job that the payload belongs to."""

    groupId: NotRequired[str]
    """The group of a prompt, which owns the payload. Either this or `requestId`."""

    requestId: NotRequired[str]
    """The request of the job that generated these tokens, which owns the payload."""

    name: str
    """Name among the payloads of the owner: `prompt`, or the attempt."""

    chunkIndex: int
    """Index of this chunk, from 0."""

    chunkCount: int
    """Chunks of the whole payload."""

    data: str
    """The chunk in base64. Services do not read payloads; all chunks together are JSON of `Prompt` for a
    prompt, of `SegmentPayload` for the tokens of a segment.
    """


class QuarantineServerRequest(TypedDict):
    """`server.quarantine`: takes a server out of service at once and keeps it registered, for an engine
    that is to be examined: it is cordoned, and its epoch expires with its leases and sessions. It is
    `failed` until its engine has restarted, then `cordoned`. `server.uncordon` ends it.
    """

    serverId: str
    """Id of a server (one engine with its address), chosen by the caller that registers it."""

    reason: NotRequired[str]
    """Text for the log and the event."""


class RankedServer(TypedDict):
    """A server and its rank."""

    serverId: str
    """Id of a server (one engine with its address), chosen by the caller that registers it."""

    key: float
    """Load key before the choice, in the unit of the policy; the lowest is chosen."""


class ReadGroup(TypedDict):
    """A group that was read completely."""

    groupId: str
    """Id of a group, one prompt with its samples, unique in its job, chosen by its trainer."""

    digest: str
    """Digest of the group, from the results."""


class ReadinessCheck(TypedDict):
    """One check of `/readyz`."""

    check: str
    """Name of the check, for example `redis`."""

    passes: bool
    """Whether the check passes."""

    reason: NotRequired[str]
    """Why the check fails; of a check that passes: a warning."""


class ReadinessReply(TypedDict):
    """Reply of one replica."""

    app: str
    """Name of its service."""

    replicaId: str
    """Id of the replica."""

    ready: bool
    """Whether all checks pass: requests may be sent to the replica."""

    checks: list[ReadinessCheck]
    """The checks of its `/readyz`."""


class RebalanceSettings(TypedDict):
    """Settings of the rebalancer of a pool (libs/policies/src/rebalance/README.md)."""

    mode: NotRequired[Literal["off", "dry-run", "on"]]
    """`off`; `on`: make plans and move requests; `dry-run`: make, store and count plans only."""

    policy: NotRequired[RebalancePolicy]
    """How moves are planned."""

    tiers: NotRequired[list[int]]
    """Batch sizes for which the engines have captured graphs; strictly descending."""

    stepBaseSeconds: NotRequired[float]
    """A decode step takes stepBaseSeconds + stepPerSequenceSeconds x tier."""

    stepPerSequenceSeconds: NotRequired[float]
    """Time of a decode step for each sequence of its tier, seconds."""

    prefillTokensPerSecond: NotRequired[float]
    """Prefill speed of an engine, tokens per second."""

    kvBytesPerToken: NotRequired[float]
    """Servers with one value of the label `kv-store` keep their KV caches in one store: size of the cache
    of a token, bytes; 0: every move computes the cache again.
    """

    kvBytesPerSecond: NotRequired[float]
    """Bytes that an engine reads from its KV store per second; 0: every move computes the cache again."""

    kvSetupSeconds: NotRequired[float]
    """Time to begin to read a cache from the KV store, seconds."""

    minGainRatio: NotRequired[float]
    """The gain must be more than this many times the longest stall."""

    pauseSeconds: NotRequired[float]
    """Further time that a plan costs, seconds."""

    maxMovesPerRequest: NotRequired[int]
    """Maximum moves of one request."""

    minMoveIntervalMs: NotRequired[int]
    """Minimum time between two moves of one request, milliseconds."""

    minRemainingTokens: NotRequired[int]
    """A request with fewer expected remaining tokens stays."""

    movesDrained: NotRequired[bool]
    """Move requests away from draining servers."""

    maxRunning: NotRequired[int]
    """`tier-min`: most requests that an engine runs at once, `max_num_running_reqs` of the published rule;
    0: the largest tier.
    """

    minPlanIntervalMs: NotRequired[int]
    """Minimum time between two plans, milliseconds."""

    planIntervalMs: NotRequired[int]
    """Time after which a plan is made without a trigger, milliseconds."""

    planIntervalSteps: NotRequired[int]
    """Decode steps between two plans, `check_interval` of the published rule: then only a drain triggers
    one before. 0: plans are triggered by changes and `planIntervalMs`.
    """

    version: int
    """Version of the settings, increased by 1 with each change; 0: the defaults."""


class RebalanceStatus(TypedDict):
    """A plan with its moves."""

    cursor: NotRequired[int]
    """Set if there are more: send the same body with this cursor."""

    policy: NotRequired[RebalancePolicy]
    """The policy that made the plan."""

    tierBefore: NotRequired[int]
    """The largest batch tier of all servers at present; a batch above the largest tier counts with its
    size.
    """

    tierAfter: NotRequired[int]
    """The largest batch tier after the moves."""

    gainSeconds: NotRequired[float]
    """Expected wall time saved, seconds."""

    costSeconds: NotRequired[float]
    """Engine time of all moves, seconds."""

    stallSeconds: NotRequired[float]
    """Longest time that one server spends on the requests it takes, seconds: the cost in wall time,
    without the pause.
    """

    reason: NotRequired[NoMoveReason]
    """Reason, if there are no moves."""

    planId: str
    """Id of the plan, from the request."""

    plannedAtMs: int
    """When the plan was made, milliseconds since 1970."""

    moves: int
    """Moves of the plan."""

    sentMoves: int
    """Moves that `rebalance.execute` has processed."""

    states: dict[str, int]
    """Moves by state."""

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
    """Epoch of the trainer of the job; send it with every later call of the trainer."""

    stepsTrained: int
    """Steps trained (rounds closed)."""

    submittedGroups: int
    """Groups ever submitted: the trainer's position in its data."""

    stamp: str
    """State of Redis at the time of a reply: send the last one with the next call that takes a stamp."""

    openRoundId: NotRequired[str]
    """The round that is not closed, if any; read its results from the beginning."""

    countedGroups: int
    """Groups of `groups` that were not counted as trained before."""

    unknown: list[str]
    """Groups of `groupIds` that Redis does not know: submit them again."""


class ReconcileJobRequest(TypedDict):
    """`job.reconcile`: restores state that Redis may have lost, after GENERATION_CHANGED and a takeover.
    The trainer names the steps that Redis does not count as trained, oldest first, each in pages;
    `groupIds` asks which groups Redis has. All calls may be repeated.
    """

    job: str
    """Id of a job, one training run, chosen by its trainer."""

    stamp: NotRequired[str]
    """Stamp of the last reply."""

    trainerEpoch: NotRequired[str]
    """Epoch of the takeover; absent only if the takeover answered JOB_NOT_FOUND: then the job is created
    again.
    """

    takeoverId: NotRequired[str]
    """Id of that `round.takeover`; required without `trainerEpoch`, so that a repeated call gets the same
    epoch.
    """

    step: NotRequired[int]
    """A trained step; with `groups`."""

    groups: NotRequired[list[TrainedGroup]]
    """Groups of that step. Each counts as trained once, in whatever state Redis has it, and also if Redis
    does not know it.
    """

    isLast: NotRequired[bool]
    """The last page of the step: the step counts as trained."""

    groupIds: NotRequired[list[str]]
    """Groups that were submitted and not trained; the reply lists groups that Redis does not know."""


class ReconcileServerReply(TypedDict):
    """Reply of `server.reconcile`."""

    cursor: NotRequired[str]
    """Send this for the next page; absent on the last page."""

    leases: int
    """Present leases of the server."""

    engineRunning: NotRequired[int]
    """Requests that its engine runs, as reported; these four fields are absent if it reports no load."""

    engineWaiting: NotRequired[int]
    """Requests that wait in the engine."""

    reportAgeMs: NotRequired[int]
    """Age of the report of the engine, milliseconds; an old report explains a difference."""

    drift: NotRequired[int]
    """Leases minus running and waiting requests."""

    holders: list[LeaseHolder]
    """Workers of this page of leases; a worker may be in several pages."""

    returned: int
    """Leases of expired worker epochs in this page."""


class ReconcileServerRequest(TypedDict):
    """`server.reconcile`: makes workers prove their leases on a server whose leases differ from the load
    of its engine. Leases of expired worker epochs are returned at once; the next heartbeat asks live
    workers for a `worker.sync`, and they return the leases they do not hold. Errors: SERVER_NOT_FOUND,
    FENCED.
    """

    serverId: str
    """Id of a server (one engine with its address), chosen by the caller that registers it."""

    epoch: NotRequired[str]
    """Only if this is the current epoch."""

    cursor: NotRequired[str]
    """Cursor of the previous page."""


class RefusedItem(TypedDict):
    """A refused acquire; a granted one has `leaseId`."""

    acquireId: str
    """Id of the acquire, from the request."""

    error: WireError
    """Why there is no lease."""


class RegisterServerReply(TypedDict):
    """Reply of `server.register`."""

    serverId: str
    """Id of a server (one engine with its address), chosen by the caller that registers it."""

    epoch: str
    """Epoch of the server."""

    state: ServerState
    """State of the server."""

    weightVersionTaken: NotRequired[Literal[False]]
    """The engine has not reset its prefix cache, so the version does not count yet and the server takes no
    leases. The load-balancer asks for the reset again at each probe; a report of the version does so at
    once.
    """


class RegisterServerRequest(TypedDict):
    """`server.register`: adds or updates a server; idempotent. Another instanceId, or none, starts a new
    epoch: old leases and sessions expire, and the server is `pending` until it answers a probe (the
    call waits for the first one, for at most a second) or sends a heartbeat. The same instanceId
    updates the description of the server, never its state.
    """

    serverId: str
    """Id of a server (one engine with its address), chosen by the caller that registers it."""

    endpoint: str
    """Base URL of the engine, without user, password and query: it is shown to callers."""

    dialect: EngineDialect
    """API of the engine."""

    instanceId: NotRequired[str]
    """Id of this start of the engine. A registration without an instanceId is a restart, unless it repeats
    the `registrationId` of the last one.
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
    """Capabilities of the engine; absent = the load-balancer probes them."""

    probe: NotRequired[bool]
    """False for an engine that only its callers can reach: it is not probed and counts as answering."""

    registrationId: NotRequired[str]
    """Id of this call, for idempotency without an instanceId: a repeat of the server's last registration
    keeps the epoch, and a late repeat of an earlier one is answered FENCED. The clients of this
    repository add it.
    """


class RegisterWorkerReply(TypedDict):
    """Reply of `worker.register`."""

    workerEpoch: str
    """Send this with every later call of the worker."""

    ttlMs: int
    """Time without a heartbeat after which the epoch expires, milliseconds."""

    serverTimeMs: int
    """Time of Redis, milliseconds since 1970."""


class RegisterWorkerRequest(TypedDict):
    """`worker.register`: starts a new epoch; the previous one expires with all its leases and attempts."""

    workerId: str
    """Id of the worker, chosen by the worker; the same after restarts."""

    registrationId: str
    """Id of the registration, for idempotency: a repeat gets the same epoch."""

    ttlMs: NotRequired[int]
    """Time without a heartbeat after which the epoch expires, milliseconds."""


class ReleaseItem(TypedDict):
    """One lease to release."""

    leaseId: NotRequired[str]
    """The lease; exactly one of leaseId and acquireId."""

    acquireId: NotRequired[str]
    """The acquire of the lease. If it has not arrived yet, it is refused when it arrives."""

    outcome: ReleaseOutcome
    """How the call under it ended."""

    tokens: NotRequired[int]
    """Tokens generated under this lease."""

    retryAfterMs: NotRequired[int]
    """With `busy`: how long the engine has asked not to be called (`Retry-After`), milliseconds. Default:
    1 s, then twice as long with each such answer in a row, at most 30 s.
    """


class ReleaseManyReply(TypedDict):
    """Reply of `lb.release-many`."""

    results: list[ReleaseReply]
    """In the order of the request."""


class ReleaseManyRequest(TypedDict):
    """`lb.release-many`"""

    releases: list[ReleaseItem]
    """The leases."""


class ReleaseReply(TypedDict):
    """Reply of `lb.release`."""

    released: bool
    """True if this call released the lease."""

    reason: Literal["released", "already-released", "unknown", "fenced", "tombstone"]
    """`tombstone`: there was no lease, and a later acquire with this acquireId is refused."""

    mostServersFail: NotRequired[bool]
    """After the outcome `failed`: true while more than half of the servers answer probes and fail calls of
    other prompts, so that this failure is no evidence about the request. Absent: it is.
    """


class ReleaseRequest(TypedDict):
    """`lb.release`; may be sent without a reply subject."""

    leaseId: NotRequired[str]
    """The lease; exactly one of leaseId and acquireId."""

    acquireId: NotRequired[str]
    """The acquire of the lease. If it has not arrived yet, it is refused when it arrives."""

    outcome: ReleaseOutcome
    """How the call under it ended."""

    tokens: NotRequired[int]
    """Tokens generated under this lease."""

    retryAfterMs: NotRequired[int]
    """With `busy`: how long the engine has asked not to be called (`Retry-After`), milliseconds. Default:
    1 s, then twice as long with each such answer in a row, at most 30 s.
    """


class RememberPromptsReply(TypedDict):
    """Reply of `prompt.remember`."""

    remembered: int
    """Prompts whose lengths were added by this call or by the call that it repeats."""


class RememberPromptsRequest(TypedDict):
    """`prompt.remember`: adds lengths to the prompt memory of the pool; lengths of trained samples are
    added automatically.
    """

    prompts: list[KnownPrompt]
    """The prompts."""

    rememberId: NotRequired[str]
    """Id of this call, for idempotency: within 10 minutes a repeat with it adds nothing. Absent: it adds
    them again.
    """


class RemoveServerReply(TypedDict):
    """Reply of `server.remove`."""

    removed: bool
    """False if there was no such server."""


class RemoveServerRequest(TypedDict):
    """`server.remove`: removes a server; its leases expire at once, and later releases change nothing."""

    serverId: str
    """Id of a server (one engine with its address), chosen by the caller that registers it."""


class RequestAbortedEvent(TypedDict):
    """A request was dropped for good."""

    type: Literal["request.aborted"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool it happened in."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    requestId: str
    """The request."""

    attempt: str
    """Last attempt of the request."""

    tokens: int
    """Tokens of all attempts."""


class RequestCounts(TypedDict):
    """Requests by state; always submitted = pending + claimed + running + cutting + unfinished + finished
    + trained + failed + dropped.
    """

    submitted: int
    """All submitted samples."""

    pending: int
    """Waiting for a worker."""

    claimed: int
    """With a worker, not running yet."""

    running: int
    """Running on an engine."""

    cutting: int
    """To be stopped, not confirmed yet."""

    unfinished: int
    """In the long-tail queue, not finished."""

    finished: int
    """Finished, not trained yet."""

    trained: int
    """Trained."""

    failed: int
    """Failed for good."""

    dropped: int
    """Dropped, never trained."""


class RequestDetails(TypedDict):
    """One request with its history."""

    segments: list[Segment]
    """References of the tokens of ended attempts, in order."""

    segmentsFollow: NotRequired[Literal[True]]
    """The segments do not fit this message, and `segments` is empty: read them with `request.segments`."""

    requestId: str
    """Id of a request: `<job>/<groupId>/<sampleIndex>`, with `~0` for `~` and `~1` for `/` in job and
    group; unique in the pool.
    """

    attempt: str
    """Fencing number of one attempt of a request: `<number>-<random>`. The number counts the attempts for
    display; the whole text is compared. `0` for a request that was never claimed.
    """

    failures: int
    """Failures of the engine or of the request so far."""

    tokenCount: int
    """Reported tokens of all attempts. It does not grow if the request is stuck."""

    workerId: NotRequired[str]
    """The worker of the request; these three fields are absent if no worker has it."""

    workerEpoch: NotRequired[str]
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. It is
    opaque and compared for equality only. It is random instead of counted, because a Redis that loses
    its last changes would give the same number twice.
    """

    ageMs: NotRequired[int]
    """Time since the claim."""

    serverId: NotRequired[str]
    """The server it runs on, once its worker has reported it."""

    boundServerId: NotRequired[str]
    """The server it was moved to and does not run on yet."""

    state: Union[Literal["pending", "claimed", "running", "cutting", "unfinished"], Literal["finished"], Literal["trained"], Literal["failed"], Literal["dropped"]]
    """State of the request (docs/architecture.md: States of a request)."""

    job: str
    """Id of a job, one training run, chosen by its trainer."""

    groupId: str
    """Id of a group, one prompt with its samples, unique in its job, chosen by its trainer."""

    roundId: NotRequired[str]
    """The round of its group; absent in the long-tail queue."""

    firstStep: NotRequired[int]
    """Step in which its group was first submitted."""

    cuts: int
    """Number of cuts of its group."""


class RequestFailure(TypedDict):
    """Why a request failed for good."""

    requestId: str
    """The request."""

    reason: ReturnReason
    """Why its last attempt ended."""

    message: NotRequired[str]
    """Message text."""

    atMs: int
    """When it failed, milliseconds since 1970."""


class RequestFinishedEvent(TypedDict):
    """A sample was finished."""

    finishReason: Literal["stop", "length"]
    """Why generation ended: the model stopped (`stop`), or the budget was used up (`length`)."""

    type: Literal["request.finished"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool it happened in."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    requestId: str
    """The request."""

    roundId: str
    """Round of the attempt."""

    attempt: str
    """The attempt."""

    queuedAtMs: NotRequired[int]
    """When the request became pending, by the clock of Redis, milliseconds since 1970."""

    claimedAtMs: NotRequired[int]
    """When a worker claimed it, by the clock of Redis, milliseconds since 1970."""

    serverId: NotRequired[str]
    """The server that the worker has reported; absent if it never did."""

    attemptTokens: int
    """Tokens of this attempt."""

    run: NotRequired[AttemptRun]
    """Measurements of the worker; absent if the attempt had no server, or if the worker has expired."""

    tokens: int
    """Tokens of all attempts."""


class RequestLostEvent(TypedDict):
    """Redis has lost keys of a request, which cannot run any more."""

    type: Literal["request.lost"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool it happened in."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    requestId: str
    """The request."""


class RequestSegmentsReply(TypedDict):
    """Reply of `request.segments`."""

    cursor: NotRequired[int]
    """Set if there are more: send the same body with this cursor."""

    segments: list[Segment]
    """The segments, in order."""


class RequestSegmentsRequest(TypedDict):
    """`request.segments`: one page of the segments of a request, in order, if they do not fit a claim or
    result.
    """

    requestId: str
    """Id of a request: `<job>/<groupId>/<sampleIndex>`, with `~0` for `~` and `~1` for `/` in job and
    group; unique in the pool.
    """

    cursor: NotRequired[int]
    """Cursor of the previous page."""


class RequestStatus(TypedDict):
    """One request that has not ended."""

    requestId: str
    """Id of a request: `<job>/<groupId>/<sampleIndex>`, with `~0` for `~` and `~1` for `/` in job and
    group; unique in the pool.
    """

    state: Literal["pending", "claimed", "running", "cutting", "unfinished"]
    """State of the request (docs/architecture.md: States of a request)."""

    attempt: str
    """Fencing number of one attempt of a request: `<number>-<random>`. The number counts the attempts for
    display; the whole text is compared. `0` for a request that was never claimed.
    """

    failures: int
    """Failures of the engine or of the request so far."""

    tokenCount: int
    """Reported tokens of all attempts. It does not grow if the request is stuck."""

    workerId: NotRequired[str]
    """The worker of the request; these three fields are absent if no worker has it."""

    workerEpoch: NotRequired[str]
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. It is
    opaque and compared for equality only. It is random instead of counted, because a Redis that loses
    its last changes would give the same number twice.
    """

    ageMs: NotRequired[int]
    """Time since the claim."""

    serverId: NotRequired[str]
    """The server it runs on, once its worker has reported it."""

    boundServerId: NotRequired[str]
    """The server it was moved to and does not run on yet."""


class RequeueReply(TypedDict):
    """Reply of `longtail.requeue`."""

    results: list[RequeueResult]
    """One result for each sample of the request, in order."""


class RequeueRequest(TypedDict):
    """`longtail.requeue`: a worker, or an agent loop of the trainer, returns unfinished samples with their
    tokens. As after a cut, the whole group goes to the long-tail queue, with its finished samples.
    Without a worker, an operator names samples that run: their workers get a command to stop, and the
    group waits in the queue when they have confirmed.
    """

    job: str
    """Id of a job, one training run, chosen by its trainer."""

    workerId: NotRequired[str]
    """The worker that returns the samples; with `workerEpoch`. Absent: an operator."""

    workerEpoch: NotRequired[str]
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. It is
    opaque and compared for equality only. It is random instead of counted, because a Redis that loses
    its last changes would give the same number twice.
    """

    requests: list[RequeuedSample]
    """The samples; each gets its own answer."""


class RequeueResult(TypedDict):
    """Result for one returned sample."""

    requestId: str
    """Id of a request: `<job>/<groupId>/<sampleIndex>`, with `~0` for `~` and `~1` for `/` in job and
    group; unique in the pool.
    """

    state: NotRequired[Literal["pending", "cutting", "unfinished", "failed", "dropped"]]
    """State of the sample; `cutting`: its worker has not confirmed yet; `dropped`, `failed`: its group had
    ended before. Absent if there is an error.
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
    """Fencing number of one attempt of a request: `<number>-<random>`. The number counts the attempts for
    display; the whole text is compared. `0` for a request that was never claimed.
    """

    segment: NotRequired[Segment]
    """Reference of the tokens so far, by the worker; without it the last partial save counts."""


class RestoreJobReply(TypedDict):
    """Reply of `job.restore`."""

    trainerEpoch: str
    """Epoch of the trainer of the job; send it with every later call of the trainer."""

    stepsTrained: int
    """Steps trained (rounds closed)."""

    submittedGroups: int
    """Groups ever submitted: the trainer's position in its data."""

    stamp: str
    """State of Redis at the time of a reply: send the last one with the next call that takes a stamp."""

    tag: str
    """Tag of the snapshot, from the request."""

    state: Literal["restoring", "restored"]
    """`restoring`: not finished; send the same body again."""

    groups: int
    """Groups of the long-tail queue."""


class RestoreJobRequest(TypedDict):
    """`job.restore`: returns the job to a snapshot and fences every earlier trainer. Groups submitted
    later are unknown again: the trainer submits them again.
    """

    job: str
    """Id of a job, one training run, chosen by its trainer."""

    stamp: NotRequired[str]
    """Stamp of the last reply."""

    trainerEpoch: NotRequired[str]
    """Absent: the previous trainer is fenced, as by `round.takeover`."""

    tag: str
    """Tag of a complete snapshot."""


class ResumePoolRequest(TypedDict):
    """`pool.resume`: ends a pause; waiting acquires and claims are served."""


class RewardGroupsReplyOutcomes(TypedDict):
    """Part of another type."""

    groupId: str
    """Id of a group, one prompt with its samples, unique in its job, chosen by its trainer."""

    outcome: RewardOutcome
    """Consequence of its rewards for a group. `kept`: it is trained. `excluded`: it is not trained.
    `replaced`: it is not trained, and the round accepts another one.
    """


class RewardGroupsReply(TypedDict):
    """Reply of `round.reward`."""

    stamp: str
    """State of Redis at the time of a reply: send the last one with the next call that takes a stamp."""

    outcomes: list[RewardGroupsReplyOutcomes]
    """One outcome for each group of the request, in order: the outcome of the group's first report."""


class RewardGroupsRequest(TypedDict):
    """`round.reward`: reports the rewards of accepted groups, as soon as they are known. The
    `equalRewards` of the policy decides over a group whose rewards are all equal. The first report of a
    group counts.
    """

    job: str
    """Id of a job, one training run, chosen by its trainer."""

    stamp: NotRequired[str]
    """Stamp of the last reply."""

    trainerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. It is
    opaque and compared for equality only. It is random instead of counted, because a Redis that loses
    its last changes would give the same number twice.
    """

    roundId: str
    """Id of a round of a job, chosen by its trainer."""

    groups: list[GroupRewards]
    """The groups, each once."""

    remainingGroups: NotRequired[int]
    """Groups that the trainer can still submit, for `equalRewards` `replace`: without others, a group is
    not replaced.
    """


class RollbackPoolRequest(TypedDict):
    """`pool.rollback`: sets all settings as they were in an earlier version, as a new version. A
    `requiredWeightVersion` becomes the version of the weights that was committed last, if there is one.
    """

    version: int
    """A version of `pool.history`."""

    ifVersion: NotRequired[int]
    """Only if the settings have this version now, or are already as asked; otherwise VERSION_MISMATCH."""


class RollbackWeightsRequest(TypedDict):
    """`weights.rollback`: the pool resumes with its previous weights; servers that report the new ones are
    `quarantined`.
    """

    syncId: str
    """The change of weights."""

    trainerEpoch: NotRequired[str]
    """Epoch of the trainer of the job; absent: the epoch that began the change."""

    stamp: NotRequired[str]
    """Stamp of the last reply."""


class RoundCancelledEvent(TypedDict):
    """A round was cancelled."""

    type: Literal["round.cancelled"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool it happened in."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    job: str
    """The job."""

    roundId: str
    """The round."""

    step: int
    """Training step of the round, from 1; another round will train it."""

    mode: CancelMode
    """Treatment of the groups of the round."""

    groups: int
    """Groups that are requeued or dropped."""

    reason: NotRequired[str]
    """Why it was cancelled."""


class RoundClosedEvent(TypedDict):
    """The trainer has acknowledged a round."""

    step: int
    """Training step, from 1."""

    type: Literal["round.closed"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool it happened in."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    job: str
    """The job."""

    roundId: str
    """The round."""

    trainedGroups: int
    """Groups that were trained."""


class RoundCompletedEvent(TypedDict):
    """A round was completed: it has all its groups, or its deadline has passed."""

    step: int
    """Training step, from 1."""

    acceptedGroups: int
    """Groups accepted so far."""

    type: Literal["round.completed"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool it happened in."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    job: str
    """The job."""

    roundId: str
    """The round."""

    reason: CompletedReason
    """Why it was completed."""


class RoundOpenedEvent(TypedDict):
    """A round was opened."""

    takeGroups: int
    """Groups `round.open` takes from the long-tail queue."""

    step: int
    """Training step, from 1."""

    kind: RoundKind
    """Kind of the round, from its plan."""

    neededGroups: int
    """Groups the round accepts: the groups that the step trains, and `replacedGroups`."""

    newGroups: int
    """New groups of its plan, and new groups that replace others."""

    type: Literal["round.opened"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool it happened in."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    job: str
    """The job."""

    roundId: str
    """The round."""

    policy: TailPolicyName
    """Tail policy of the round."""


class RoundProgressedEvent(TypedDict):
    """A group was accepted."""

    acceptedGroups: int
    """Groups accepted so far."""

    neededGroups: int
    """Groups the round accepts: the groups that the step trains, and `replacedGroups`."""

    type: Literal["round.progressed"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool it happened in."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    job: str
    """The job."""

    roundId: str
    """The round."""

    groupId: str
    """The group."""


class RoundResultsReply(TypedDict):
    """Reply of `round.results`."""

    stamp: str
    """State of Redis at the time of a reply: send the last one with the next call that takes a stamp."""

    state: RoundState
    """State of the round."""

    groups: list[GroupResult]
    """The groups, in the order of acceptance."""

    cursor: str
    """Cursor for the next page; the cursor of the last page is the proof for `round.close`."""

    complete: bool
    """The round is completed, and this is the last page."""

    ledger: NotRequired[LedgerSummary]
    """With the last page: cost of the policy in this round."""


class RoundResultsRequest(TypedDict):
    """`round.results`: returns accepted groups in the order of acceptance, also while the round is open."""

    job: str
    """Id of a job, one training run, chosen by its trainer."""

    stamp: NotRequired[str]
    """Stamp of the last reply."""

    roundId: str
    """Id of a round of a job, chosen by its trainer."""

    cursor: NotRequired[str]
    """Cursor of the previous page; absent: from the beginning. GENERATION_CHANGED if Redis has lost groups
    that were read before.
    """

    limit: NotRequired[int]
    """Maximum groups of the page."""

    waitMs: NotRequired[int]
    """How long to wait for the next group or the end of the round, milliseconds."""

    trainerEpoch: NotRequired[str]
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. It is
    opaque and compared for equality only. It is random instead of counted, because a Redis that loses
    its last changes would give the same number twice.
    """


class RoundSettledEvent(TypedDict):
    """All cut requests of a round are confirmed, and all groups that were not accepted are in the
    long-tail queue.
    """

    type: Literal["round.settled"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool it happened in."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    job: str
    """The job."""

    roundId: str
    """The round."""


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
    """Weight version at its opening."""

    trainerEpoch: str
    """Epoch of its trainer, which every call of the trainer has."""

    neededGroups: int
    """Groups the round accepts: the groups that the step trains, and `replacedGroups`."""

    newGroups: int
    """New groups of its plan, and new groups that replace others."""

    takenGroups: int
    """Groups taken from the long-tail queue."""

    roundGroups: int
    """Groups of the round: taken and submitted."""

    acceptedGroups: int
    """Groups accepted so far."""

    excludedGroups: int
    """Accepted groups that are not trained, as their rewards are equal."""

    replacedGroups: int
    """Excluded groups in whose place the round accepts another group."""

    unrewardedGroups: NotRequired[int]
    """Accepted groups whose rewards an open round waits for; only with `equalRewards` `replace`."""

    failedGroups: int
    """Groups with a request that failed for good."""

    droppedGroups: int
    """Groups that lost a sample to an abort or a timeout and could not continue; never trained."""

    shortfallGroups: int
    """Groups that may replace lost ones: max(0, needed - accepted - live). With `accept-fewer` none is
    needed.
    """

    requestsDone: int
    """Samples finished in this round."""

    requestsCut: int
    """Started requests that were cut."""

    groupsRequeued: int
    """Groups that went to the long-tail queue."""

    pinnedGroups: int
    """Groups with a reserved place that are not accepted yet: the round waits for them."""

    heldGroups: int
    """Finished groups without a place."""

    requestsInFlight: NotRequired[int]
    """Requests of workers; only for fixed-concurrency."""

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
    """Why no request of the round is claimed, or none runs, at present."""

    settled: bool
    """All cut requests are confirmed, and all groups that were not accepted are in the long-tail queue."""

    completedReason: NotRequired[CompletedReason]
    """Why the round was completed; absent before."""

    openedAtMs: int
    """When it was opened, milliseconds since 1970."""

    completedAtMs: NotRequired[int]
    """When it was completed, milliseconds since 1970; absent before."""

    stamp: NotRequired[str]
    """Absent in the reply of `round.takeover`, which has its own stamp."""


class RoundStatusRequest(TypedDict):
    """`round.status`: state of a round; default: the round that is not closed, or the last one."""

    job: str
    """Id of a job, one training run, chosen by its trainer."""

    stamp: NotRequired[str]
    """Stamp of the last reply."""

    roundId: NotRequired[str]
    """Id of a round of a job, chosen by its trainer."""

    trainerEpoch: NotRequired[str]
    """Counts as a call of the trainer, so that claims continue."""


class RoundSubmittedEvent(TypedDict):
    """Groups were added to a round."""

    type: Literal["round.submitted"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool it happened in."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    job: str
    """The job."""

    roundId: str
    """The round."""

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
    """Groups the round accepts: the groups that the step trains, and `replacedGroups`."""

    acceptedGroups: int
    """Groups accepted so far."""

    openedAtMs: int
    """When it was opened, milliseconds since 1970."""

    completedAtMs: NotRequired[int]
    """When it was completed, milliseconds since 1970; absent before."""


class SampleResult(TypedDict):
    """One finished sample."""

    segments: list[Segment]
    """References of the tokens of ended attempts, in order."""

    segmentsFollow: NotRequired[Literal[True]]
    """The segments do not fit this message, and `segments` is empty: read them with `request.segments`."""

    finishReason: Literal["stop", "length"]
    """Why generation ended: the model stopped (`stop`), or the budget was used up (`length`)."""

    engineFinishReason: NotRequired[str]
    """The finish reason as the engine named it, e.g. `tool_calls`; absent if it named none."""

    requestId: str
    """Id of a request: `<job>/<groupId>/<sampleIndex>`, with `~0` for `~` and `~1` for `/` in job and
    group; unique in the pool.
    """

    sampleIndex: int
    """Index of the sample in its group, from 0."""

    tokenCount: int
    """Tokens of all segments."""

    acceptance: NotRequired[float]
    """How much the tail policy prefers samples of about this length (at most a factor of sqrt(2) off):
    their share of the samples that earlier steps have trained / their share of the samples that earlier
    steps have started. Proportional to the probability that a sample is trained: weight the sample by
    the inverse. Absent if earlier steps have trained none.
    """


class SamplingParameters(TypedDict):
    """Sampling parameters, passed to the engine adapter, which refuses unknown names. Without `seed`
    engines use their own random numbers. With `seed` each sample gets a seed derived from it, the job,
    the group, the sample index and the number of its tokens: reproducible, and independent of all
    others (`sampleSeed` of libs/engines).
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


class SaveReply(TypedDict):
    """Reply of `request.save`."""

    action: Literal["continue", "abort"]
    """`abort`: end the attempt with `request.fail`, reason `aborted`."""


class SaveRequest(TypedDict):
    """`request.save`: reports that the attempt runs on this server; with a segment it is a partial save of
    its tokens.
    """

    workerId: str
    """Id of a worker, which holds leases and requests, chosen by the worker."""

    workerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. It is
    opaque and compared for equality only. It is random instead of counted, because a Redis that loses
    its last changes would give the same number twice.
    """

    requestId: str
    """Id of a request: `<job>/<groupId>/<sampleIndex>`, with `~0` for `~` and `~1` for `/` in job and
    group; unique in the pool.
    """

    attempt: str
    """Fencing number of one attempt of a request: `<number>-<random>`. The number counts the attempts for
    display; the whole text is compared. `0` for a request that was never claimed.
    """

    generatedMs: NotRequired[int]
    """Generation time of the attempt so far, milliseconds; for a sample with `timeoutMs`."""

    serverId: NotRequired[str]
    """The server it runs on; required with the first call of an attempt that may be moved."""

    waiting: NotRequired[bool]
    """The engine has sent no token for some seconds: the request waits there, or was preempted. Absent: it
    runs.
    """

    segment: NotRequired[Segment]
    """Tokens of the attempt so far."""

    run: NotRequired[AttemptRun]
    """Times of the attempt so far; for the times of moves, sent with the first tokens of an attempt that
    was bound to its server.
    """


class Segment(TypedDict):
    """Tokens that one attempt generated with one weight version. A sample is a list of segments."""

    attempt: str
    """The attempt that generated the tokens."""

    serverId: str
    """The server that generated them."""

    serverEpoch: str
    """Epoch of that server."""

    weightVersion: int
    """Weight version."""

    tokenCount: int
    """Number of tokens."""

    ref: str
    """Reference of the payload with the tokens: JSON `SegmentPayload`."""

    toWeightVersion: NotRequired[int]
    """Set if the weights changed meanwhile (mode `keep`): the tokens are from `weightVersion` up to this
    version.
    """

    mixedWeightVersion: NotRequired[int]
    """Written by services with `toWeightVersion`: the version of a change in mode `keep` that may have met
    any token.
    """

    resumedBy: NotRequired[str]
    """`text` if the engine could resume only by text, not by token ids."""


class SegmentPart(TypedDict):
    """Tokens in a row, of a segment, that one server generated with one weight version."""

    tokenCount: int
    """Number of tokens."""

    serverId: str
    """Id of a server (one engine with its address), chosen by the caller that registers it."""

    serverEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. It is
    opaque and compared for equality only. It is random instead of counted, because a Redis that loses
    its last changes would give the same number twice.
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
    """The rest of the text, with which a stop text may begin, if the attempt was cut there. The text of
    the next segment begins with it, unless a stop text does.
    """

    logprobs: NotRequired[list[Union[float, None]]]
    """Log probability of each token, if requested; null where the engine returned none, for one because it
    was NaN.
    """

    lossMask: NotRequired[list[Literal[0, 1]]]
    """1 for each token that the model generated, 0 for each token that it read between two turns, such as
    the output of a tool. Absent: the model generated all of them.
    """

    parts: NotRequired[list[SegmentPart]]
    """The turns of an agent loop, if their servers or weight versions differ: their tokens in order."""

    stopReason: NotRequired[Union[str, float]]
    """Stop reason of the last segment, if the engine returned one: the stop string or token, or an unknown
    finish reason.
    """

    engineFinishReason: NotRequired[str]
    """Finish reason of the last segment as the engine named it: `stop`, `length`, `tool_calls`,
    `content_filter`.
    """

    engineFields: NotRequired[dict[str, Any]]
    """Further fields of the engine's response, unread: `routed_experts`, `tool_calls`."""


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
    """The engine has not reset its prefix cache, so the version does not count yet and the server takes no
    leases. The load-balancer asks for the reset again at each probe; a report of the version does so at
    once.
    """


class ServerFencedEvent(TypedDict):
    """The epoch of a server was expired, with its leases and sessions."""

    type: Literal["server.fenced"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool it happened in."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    serverId: str
    """The server."""

    epoch: str
    """The epoch that has ended."""

    reason: NotRequired[str]
    """Reason given by the caller, if any."""


class ServerHeartbeatReply(TypedDict):
    """Reply of `server.heartbeat`."""

    weightVersionTaken: NotRequired[Literal[False]]
    """The engine has not reset its prefix cache, so the version does not count yet and the server takes no
    leases. The load-balancer asks for the reset again at each probe; a report of the version does so at
    once.
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
    """Calls of a server got no tokens though its engine answers: they move, and its epoch was expired."""

    type: Literal["server.hung"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool it happened in."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    serverId: str
    """The server."""

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
    """The engine of a server was paused for a change of weights. Only engines that can be paused have this
    event.
    """

    type: Literal["server.paused"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool it happened in."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    serverId: str
    """The server."""

    syncId: str
    """The change of weights."""


class ServerResumedEvent(TypedDict):
    """The engine of a server was resumed after a change of weights."""

    type: Literal["server.resumed"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool it happened in."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    serverId: str
    """The server."""

    syncId: str
    """The change of weights."""


class ServerSigns(TypedDict):
    """Tokens that the calls of a worker get from one server: a better sign of life than the health of its
    engine.
    """

    serverId: str
    """The server."""

    epoch: str
    """Epoch of the server, as in the leases of the calls."""

    tokens: int
    """Tokens received since the heartbeat before."""

    silentMs: int
    """Time in which streams of the worker have run since their last token, milliseconds; 0 if tokens were
    received.
    """

    contextTokens: NotRequired[int]
    """Tokens of the longest prompt among the streams without a token: its processing explains a silence."""


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
    """Models and adapters that the engine lists, with `*` if it has more; absent before they are known."""

    inflight: int
    """Present number of leases."""

    maxInflight: int
    """Maximum leases at the same time."""

    weight: float
    """Relative capacity: load counts as leases / weight."""

    weightVersion: int
    """Weight version of the server."""

    heartbeatAgeMs: int
    """Time since its engine answered a probe or sent a heartbeat, milliseconds."""

    capacity: int
    """Present maximum of leases: below maxInflight in slow start or with adaptive concurrency."""

    drainUntilMs: NotRequired[int]
    """Deadline of a drain, time of Redis, milliseconds."""

    busyUntilMs: NotRequired[int]
    """Time of Redis before which the server takes no new leases, milliseconds: its engine was busy, or its
    calls failed.
    """

    hung: NotRequired[Literal[True]]
    """Calls of the server got no tokens though its engine answers: it gets one call at a time until one of
    them has a token.
    """

    probe: NotRequired[Literal[False]]
    """Present only if the server is not probed."""

    labels: NotRequired[dict[str, str]]
    """Labels of the server, if it has any."""

    capabilities: NotRequired[EngineCapabilities]
    """Capabilities of the engine; absent before they are probed."""

    load: NotRequired[ServerLoadReport]
    """Last load report of the engine; absent if it reports none. For information; leases decide."""

    engineStartedAtSeconds: NotRequired[float]
    """Start time that the engine reports, by its own clock, seconds; a later value is a restart."""

    engineWeightVersion: NotRequired[int]
    """Weight version that the engine reports; -1: it has no number. When it changes, `weightVersion`
    follows.
    """

    unconfirmedWeightVersion: NotRequired[int]
    """Weight version before the failure of the server: `weightVersion` gets it again if the engine has not
    restarted.
    """

    listedAs: NotRequired[str]
    """Identity under which discovery lists its engine: the uid of its pod, or its own id; absent if it
    does not.
    """

    withheld: NotRequired[Literal[True]]
    """The server gets no new leases because discovery does not list its engine as ready; its state is
    `cordoned` then.
    """

    weightsUnknown: NotRequired[Literal[True]]
    """The weights are unknown, so the server takes no leases: a change of weights ended at its deadline,
    and the server was not reported since the change began. A report of the version ends this.
    """

    pendingWeightVersion: NotRequired[int]
    """Weight version that does not count yet, so the server takes no leases: the engine has no salts and
    has not reset its prefix cache since a report or a change of weights. The load-balancer asks for the
    reset at each probe while no request runs on the server.
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
    """The session."""

    serverId: NotRequired[str]
    """Server of the session; absent if its next lease binds it again."""

    serverEpoch: NotRequired[str]
    """Epoch of the server."""

    leases: int
    """Live leases of the session."""

    dpRank: NotRequired[int]
    """Data-parallel rank of the session on this server."""


class SetLogLevelRequest(TypedDict):
    """`service.log-level`: sets the level of the logs of running services. Each replica that is named
    replies.
    """

    app: NotRequired[str]
    """Name of a service, for example `worker`. Default: all."""

    replicaId: NotRequired[str]
    """One replica, as in the replies. Default: all."""

    level: LogLevel
    """Lines of lower levels are not written."""


class SnapshotJobReply(TypedDict):
    """Reply of `job.snapshot`."""

    tag: str
    """Name of the snapshot."""

    step: int
    """Steps trained."""

    groups: int
    """Groups of the long-tail queue in the snapshot."""

    requests: int
    """Requests of these groups."""

    stamp: str
    """State of Redis at the time of a reply: send the last one with the next call that takes a stamp."""

    state: Literal["saving", "complete"]
    """`saving`: not finished; send the same body again."""


class SnapshotJobRequest(TypedDict):
    """`job.snapshot`: saves a snapshot of a job between two rounds: its long-tail queue with all tokens
    (by reference), step and counters. The last snapshots are kept, two by default.
    """

    job: str
    """Id of a job, one training run, chosen by its trainer."""

    stamp: NotRequired[str]
    """Stamp of the last reply."""

    trainerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. It is
    opaque and compared for equality only. It is random instead of counted, because a Redis that loses
    its last changes would give the same number twice.
    """

    tag: str
    """Name of the snapshot, for example the step; the same tag for another state is refused."""

    keep: NotRequired[int]
    """Number of the newest snapshots of the job that are kept, with this one. All their groups keep their
    payloads.
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
    """Number of its leases."""

    hasRoom: bool
    """Has room for one more lease."""

    chosen: int
    """Sequence of the last lease that chose it, modulo 2^32; 0 = never."""

    tokens: NotRequired[int]
    """Context tokens of its leases (at least 256 each) and its reported uncached tokens; only for
    `least-tokens`.
    """

    sessions: NotRequired[int]
    """Bound sessions, and leases without a session; only for `least-sessions`."""

    turn: NotRequired[int]
    """Next turn of the server; only for `round-robin`."""

    lacks: NotRequired[list[EngineFeature]]
    """Capabilities that its engine is known to lack."""

    lacksModel: NotRequired[Literal[True]]
    """The engine does not list the model that the acquire names."""

    kvUse: NotRequired[float]
    """Reported KV use, 0 to 1."""

    groupLeases: NotRequired[int]
    """Leases of the group of the acquire."""


class StatPayloadReply(TypedDict):
    """Reply of `payload.stat`."""

    bytes: int
    """Size of the whole payload, bytes."""

    chunkCount: int
    """Chunks of the whole payload."""

    storedAtMs: int
    """Time of completion, milliseconds since 1970."""


class StatPayloadRequest(TypedDict):
    """`payload.stat`"""

    ref: str
    """Reference of the payload."""


class SubmitGroupsReply(TypedDict):
    """Reply of `round.submit`."""

    stamp: str
    """State of Redis at the time of a reply: send the last one with the next call that takes a stamp."""

    roundGroups: int
    """Groups of the round so far, including groups from the queue."""

    added: int
    """Groups that were added."""

    repeated: int
    """Groups that were already in the round."""


class SubmitGroupsRequest(TypedDict):
    """`round.submit`: submits one page of groups; a known group with the same contents is skipped."""

    job: str
    """Id of a job, one training run, chosen by its trainer."""

    stamp: NotRequired[str]
    """Stamp of the last reply."""

    trainerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. It is
    opaque and compared for equality only. It is random instead of counted, because a Redis that loses
    its last changes would give the same number twice.
    """

    roundId: str
    """Id of a round of a job, chosen by its trainer."""

    groups: list[GroupSubmission]
    """The groups."""


class SyncWorkerReply(TypedDict):
    """Reply of `worker.sync`."""

    cursor: NotRequired[str]
    """Send this for the next page; absent on the last page."""

    items: list[HeldItem]
    """leaseIds with the time of the grant, or requestIds (`attempt` set) with the time of the claim."""


class SyncWorkerRequest(TypedDict):
    """`worker.sync`: lists the leases or attempts of this epoch in Redis, page by page."""

    workerId: str
    """Id of a worker, which holds leases and requests, chosen by the worker."""

    workerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. It is
    opaque and compared for equality only. It is random instead of counted, because a Redis that loses
    its last changes would give the same number twice.
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
    """Launched / needed groups of all domains."""

    domains: NotRequired[dict[str, TailChoiceDomains]]
    """By domain; '' if domains are not distinguished. Only if adaptive."""

    dripGroups: NotRequired[int]
    """Groups taken from the long-tail queue; only for `drip`."""

    drip: NotRequired[DripWhy]
    """How `dripGroups` was computed; only if adaptive."""

    auto: NotRequired[AutoChoice]
    """Choice of `auto`; absent under the other policies."""


class TailPolicy(TypedDict):
    """The tail policy of a round, as data. libs/policies/src/tail describes which fields can be combined."""

    name: TailPolicyName
    """How the round treats its slowest groups."""

    overProvision: NotRequired[float]
    """Launched groups / needed groups, at least 1. Needed by all policies but `wait` and `auto`."""

    overProvisionMode: NotRequired[ChoiceMode]
    """`adaptive`: computed from the lengths of the last steps, by domain, starting at `overProvision`."""

    sampleOverProvision: NotRequired[float]
    """Launched samples / samples of a group, at least 1: the first samples to finish are trained, the
    others are dropped.
    """

    onCut: NotRequired[CutSemantics]
    """Whether the tokens of cut samples are kept; `regenerate` discards them, all other policies keep them
    by default.
    """

    dripGroups: NotRequired[int]
    """`drip`: groups each round takes from the long-tail queue; default: as many as the round launches
    beyond its need.
    """

    dripMode: NotRequired[ChoiceMode]
    """For `drip`. `adaptive`: computed from the pace of taken and new groups (TailSieve), starting at
    `dripGroups` or 1.
    """

    dripReserved: NotRequired[bool]
    """For `drip`: a place is reserved for each taken group, so it is not cut again. Default: true if
    `dripMode` is adaptive or there are `domainQuotas`.
    """

    concurrency: NotRequired[int]
    """For `fixed-concurrency`: maximum requests of the round that workers have at the same time."""

    domainQuotas: NotRequired[dict[str, int]]
    """Groups of each domain in a whole step; other domains share the rest."""

    fleetKvTokens: NotRequired[int]
    """Tokens that fit into the KV caches of the engines for this job; limits adaptive over-provision.
    Default: the sum that the engines of the pool report; no limit if one of them reports nothing.
    """

    dispatchOrder: NotRequired[DispatchOrder]
    """Order in which requests of new groups are claimed."""

    maxCuts: NotRequired[int]
    """A group with this many cuts is taken next and not cut again."""

    maxAgeSteps: NotRequired[int]
    """A group is taken at most this many steps after its first step, and not cut again."""

    maxVersionSpan: NotRequired[int]
    """Maximum weight versions between the oldest token of a group and the round that ends it. Under
    `auto`: 2.
    """

    maxOffPolicyShare: NotRequired[float]
    """Maximum share: tokens of groups from earlier rounds / expected tokens of the batch. `auto` keeps it
    by its choice, and throws no token away for it.
    """

    maxLengthBias: NotRequired[float]
    """For `auto`: how much the mean length of trained samples may differ from the mean length of all
    samples started, as a share. Absent: no policy is chosen that throws tokens of cut samples away, so
    that nothing is biased.
    """

    maxWaste: NotRequired[float]
    """For `auto`: maximum share: tokens that the tail policy throws away / generated tokens. Tokens of
    failed and aborted samples and of groups with equal rewards do not count.
    """

    maxLongtailShare: NotRequired[float]
    """Maximum share: groups of the long-tail queue / groups of the batch, while there are new groups."""

    deadlineMs: NotRequired[int]
    """Time after which the round completes with its accepted groups, milliseconds; absent = never.
    Overrides all bounds.
    """

    shortfall: NotRequired[Literal["replace", "accept-fewer"]]
    """If accepted + live < needed: wait for replacements, or accept fewer groups."""

    equalRewards: NotRequired[EqualRewards]
    """Groups of more than one sample whose rewards are all equal (`round.reward`): GRPO learns nothing
    from them. `keep`: they are trained. `exclude`: they are not, so the step trains fewer groups.
    `replace`: another group takes the place of each, so the step trains exactly its groups (dynamic
    sampling of DAPO); the round completes when the rewards of all its groups are reported. If there is
    no other group, it is trained.
    """

    maxReplacedGroups: NotRequired[int]
    """For `equalRewards` `replace`: groups that one round replaces; all further groups with equal rewards
    are trained. Default: nine for each group the step trains.
    """

    alarms: NotRequired[LedgerBounds]
    """Bounds of the ledger: an alarm is raised when one is nearly reached or exceeded. Default of
    `offPolicyShare`, `versionSpan` and `cutsPerGroup`: `maxOffPolicyShare`, `maxVersionSpan` and
    `maxCuts`; under `auto` also of `lengthBias` and `wasteShare`: `maxLengthBias` and `maxWaste`
    (`maxWaste` counts the waste of the tail policy; a given bound of `wasteShare` counts all waste).
    """

    maxFailures: NotRequired[int]
    """Different servers that may fail one request, one after the other without a further token, before it
    fails for good; a server that has restarted is another one. While more than half of the servers fail
    other prompts too, no failure counts. The same servers may fail it again for
    REQUEST_FAILURE_DEADLINE_MS of the coordinator.
    """

    maxReturns: NotRequired[int]
    """Attempts of one request that may return unfinished for other reasons (its engine or worker dropped
    it, no server, a full payload store, ...) before it fails for good. Cuts, moves and weight changes
    do not count.
    """


class TakeoverRoundReply(TypedDict):
    """Reply of `round.takeover`."""

    stamp: str
    """State of Redis at the time of a reply: send the last one with the next call that takes a stamp."""

    trainerEpoch: str
    """Epoch of the trainer of the job; send it with every later call of the trainer."""

    stepsTrained: int
    """Steps trained (rounds closed)."""

    submittedGroups: int
    """Groups ever submitted: the trainer's position in its data."""

    round: NotRequired[RoundStatus]
    """The round that is not closed, if any."""


class TakeoverRoundRequest(TypedDict):
    """`round.takeover`: starts a new trainer of the job and fences the previous one."""

    job: str
    """Id of a job, one training run, chosen by its trainer."""

    takeoverId: str
    """Id of the takeover, for idempotency: a repeat gets the same epoch."""


class TrainedGroup(TypedDict):
    """A trained group."""

    groupId: str
    """Id of a group, one prompt with its samples, unique in its job, chosen by its trainer."""

    samples: int
    """Number of its trained samples."""


class TrainedPart(TypedDict):
    """Length and truncation of a part of the trained samples."""

    samples: int
    """How many."""

    meanTokens: float
    """Mean length, tokens."""

    capShare: float
    """Share that ended at the token budget."""


class TransferLeaseRequest(TypedDict):
    """`lb.transfer`: moves a live lease to another server atomically, with its session; leaseId and holder
    stay. The reply is the reply of an acquire, with the branch `transferred`. The caller ends the call
    on the old server. A refusal changes nothing: LEASE_NOT_FOUND, FENCED, SERVER_NOT_FOUND,
    SERVER_NOT_READY, SERVER_FULL, SERVER_UNSUITABLE, POOL_PAUSED, VALIDATION_FAILED (the lease is
    already on this server).
    """

    workerId: str
    """Id of a worker, which holds leases and requests, chosen by the worker."""

    workerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. It is
    opaque and compared for equality only. It is random instead of counted, because a Redis that loses
    its last changes would give the same number twice.
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
    """Only if this is the current epoch of the target."""

    reason: NotRequired[str]
    """Text for the log."""


class UncordonServerRequest(TypedDict):
    """`server.uncordon`: ends a cordon, and a drain in progress."""

    serverId: str
    """Id of a server (one engine with its address), chosen by the caller that registers it."""


class UpdateServerRequest(TypedDict):
    """`server.update`: changes the given fields; absent ones stay, as do leases, sessions and epoch.
    SERVER_NOT_FOUND.
    """

    serverId: str
    """Id of a server (one engine with its address), chosen by the caller that registers it."""

    maxInflight: NotRequired[int]
    """Maximum leases; a value below the present number only stops new leases."""

    weight: NotRequired[float]
    """Relative capacity: load counts as leases / weight."""

    weightVersion: NotRequired[int]
    """Present weight version of the engine."""

    weightsUnknown: NotRequired[Literal[True]]
    """A load has failed, so the engine may have a part of the new weights: the server takes no leases
    until its weights are reported. Not with `weightVersion`.
    """

    labels: NotRequired[dict[str, str]]
    """The new labels, which replace all old ones."""


class WantedMove(TypedDict):
    """A requested move: either requestId, or leaseId of a caller that only routes."""

    targetServerId: str
    """The target server."""

    targetEpoch: NotRequired[str]
    """Only if this is the current epoch of the target."""

    requestId: NotRequired[str]
    """The request to move."""

    leaseId: NotRequired[str]
    """The lease of a caller that only routes."""

    attempt: NotRequired[str]
    """Only if this attempt runs."""


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
    """No request is in flight on it."""

    paused: bool
    """The engine is paused for a change of weights. Only for engines that can be paused."""

    confirmed: bool
    """The server reports the coming version, or, without a change, the version of the pool."""

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
    """Version of the pool before; 0 before its first."""

    state: Literal["begun", "committed", "rolled-back"]
    """State of the change."""

    startedAtMs: int
    """Start, time of Redis, milliseconds, as the next two."""

    deadlineAtMs: int
    """Time of the automatic rollback."""

    endedAtMs: NotRequired[int]
    """End; absent before."""

    reason: NotRequired[str]
    """Why it ended: `asked` or `deadline`."""

    running: int
    """Leases, that is requests in flight. 0 = quiesced."""

    servers: int
    """Servers that take leases, or will when the pool resumes."""

    confirmedServers: int
    """How many of `servers` report the version of the change."""


class WeightSyncReply(TypedDict):
    """Reply of `weights.begin`, `weights.commit` and `weights.rollback`."""

    stamp: str
    """State of Redis at the time of a reply: send the last one with the next call that takes a stamp."""

    syncId: str
    """The change of weights."""

    job: NotRequired[str]
    """Job of the change."""

    version: int
    """Version of the new weights."""

    mode: WeightSyncMode
    """Treatment of running requests."""

    fromVersion: int
    """Version of the pool before; 0 before its first."""

    state: Literal["begun", "committed", "rolled-back"]
    """State of the change."""

    startedAtMs: int
    """Start, time of Redis, milliseconds, as the next two."""

    deadlineAtMs: int
    """Time of the automatic rollback."""

    endedAtMs: NotRequired[int]
    """End; absent before."""

    reason: NotRequired[str]
    """Why it ended: `asked` or `deadline`."""

    running: int
    """Leases, that is requests in flight. 0 = quiesced."""

    servers: int
    """Servers that take leases, or will when the pool resumes."""

    confirmedServers: int
    """How many of `servers` report the version of the change."""


class WeightsBegunEvent(TypedDict):
    """A change of weights has started."""

    syncId: str
    """The change of weights."""

    version: int
    """Version of the new weights."""

    mode: WeightSyncMode
    """Treatment of running requests."""

    fromVersion: int
    """Version of the pool before; 0 before its first."""

    type: Literal["weights.begun"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool it happened in."""

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
    """Pool it happened in."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    reason: str
    """Why it ended: `asked` or `deadline`."""


class WeightsRolledBackEvent(TypedDict):
    """The pool resumes with its previous weights."""

    syncId: str
    """The change of weights."""

    version: int
    """Version of the new weights."""

    type: Literal["weights.rolled-back"]
    """Name of the event, as in its subject."""

    pool: str
    """Pool it happened in."""

    atMs: int
    """When the event happened, by the clock of Redis, milliseconds since 1970."""

    sequence: int
    """Number of the event in its pool, without gaps, so that a reader detects missed events."""

    reason: str
    """Why it ended: `asked` or `deadline`."""


class WeightsStatusReply(TypedDict):
    """The weights of a pool."""

    cursor: NotRequired[str]
    """Send this for the next page; absent on the last page."""

    stamp: str
    """State of Redis at the time of a reply: send the last one with the next call that takes a stamp."""

    version: NotRequired[int]
    """Last committed version; absent before the first commit."""

    sync: NotRequired[WeightSync]
    """The present change, or the requested one; absent without one."""

    servers: list[WeightServer]
    """One page of servers; empty without `cursor`."""


class WeightsStatusRequest(TypedDict):
    """`weights.status`: state of the present change, or of `syncId`; with `cursor` also one page of
    servers.
    """

    syncId: NotRequired[str]
    """A change; available for an hour after its end."""

    cursor: NotRequired[str]
    """`0` for the first page, then the cursor of the previous page."""

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
    """Time after which the body may be sent again, milliseconds."""

    details: NotRequired[Any]
    """More about this error, depending on its code."""


class WorkerHeartbeatReply(TypedDict):
    """Counts in Redis; on a lasting mismatch, page through `worker.sync`."""

    ttlMs: int
    """Time without a heartbeat after which the epoch expires, milliseconds."""

    serverTimeMs: int
    """Time of Redis, milliseconds since 1970."""

    leaseCount: int
    """Leases of the worker in Redis."""

    leaseDigest: int
    """Sum of the sequences of their leaseIds, modulo 2^40."""

    attemptCount: int
    """Attempts of the worker in Redis."""

    generation: str
    """If it has changed, Redis was restarted or has lost its last changes, and may have lost leases: page
    through `worker.sync`, even if the counts agree.
    """

    syncAsked: NotRequired[bool]
    """Page through `worker.sync` now, even if the counts agree: a server is being reconciled
    (`server.reconcile`).
    """


class WorkerHeartbeatRequest(TypedDict):
    """`worker.heartbeat`: renews all leases and attempts of the epoch. FENCED if the epoch has expired."""

    workerId: str
    """Id of a worker, which holds leases and requests, chosen by the worker."""

    workerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. It is
    opaque and compared for equality only. It is random instead of counted, because a Redis that loses
    its last changes would give the same number twice.
    """

    leaseCount: int
    """Number of leases that the worker holds."""

    leaseDigest: int
    """Sum of the sequences of their leaseIds, modulo 2^40."""

    attemptCount: int
    """Number of attempts (claimed or running requests) of the worker."""

    servers: NotRequired[list[ServerSigns]]
    """Servers on which the worker has streams; of more than fit, others in each heartbeat."""


class WorkerStatus(TypedDict):
    """One live worker epoch."""

    ttlMs: int
    """Time without a heartbeat after which the epoch expires, milliseconds."""

    workerId: str
    """Id of a worker, which holds leases and requests, chosen by the worker."""

    workerEpoch: str
    """Fencing number of a trainer of a job, a registration of a worker, or a start of a server. It is
    opaque and compared for equality only. It is random instead of counted, because a Redis that loses
    its last changes would give the same number twice.
    """

    heartbeatAgeMs: int
    """Time since the registration or the last heartbeat; above ttlMs the epoch expires."""

    ageMs: int
    """Time since the registration."""

    leases: int
    """Leases of the worker."""

    attempts: int
    """Requests of the worker: claimed, running or cutting."""

    syncAsked: NotRequired[bool]
    """The worker was asked to prove its leases (`server.reconcile`) and has not started."""


AbortScope = Literal["sample", "group"]
AutoBound = Literal["maxOffPolicyShare", "maxVersionSpan", "maxLengthBias", "maxWaste"]
AutoReason = Literal["unknown", "best", "step", "predicted", "measured", "late"]
CancelMode = Literal["requeue", "drop"]
ChatMessage = dict[str, Any]
ChoiceMode = Literal["fixed", "adaptive"]
CompletedReason = Literal["accepted", "deadline", "accepted-fewer"]
ContentPart = dict[str, Any]
CutSemantics = Literal["keep", "discard"]
DecisionBranch = Literal["sticky-hit", "sticky-broken", "least-loaded", "tie", "round-robin", "hash", "group-spread", "group-affinity", "bound", "bound-unavailable", "transferred", "waited", "repeated"]
DispatchOrder = Literal["arrival", "longest-first", "probe-first"]
EngineDialect = Literal["vllm", "sglang", "openai"]
EngineFeature = Literal["tokenIdsIn", "tokenIdsOut", "logprobs", "abortById", "abortOnDisconnect", "loadReport", "prefixCacheReset", "tokenize"]
EqualRewards = Literal["keep", "exclude", "replace"]
ErrorCode = Literal["MALFORMED_JSON", "VALIDATION_FAILED", "PAYLOAD_TOO_LARGE", "NOT_FOUND_SUBJECT", "UNAUTHENTICATED", "FORBIDDEN", "ROUTE_NOT_FOUND", "METHOD_NOT_ALLOWED", "UNSUPPORTED_MEDIA_TYPE", "IDEMPOTENCY_KEY_REUSED", "REQUEST_IN_PROGRESS", "OUTCOME_UNKNOWN", "RATE_LIMITED", "REPLY_FULL", "OVERLOADED", "SHUTTING_DOWN", "UNAVAILABLE", "STORE_FULL", "SCHEMA_UNSUPPORTED", "TIMEOUT", "INTERNAL", "FENCED", "GENERATION_CHANGED", "NO_SERVER_AVAILABLE", "SERVERS_FULL", "WAIT_TIMEOUT", "QUEUE_FULL", "POOL_NOT_FOUND", "POOL_PAUSED", "NO_CAPABLE_SERVER", "SESSION_NOT_FOUND", "SERVER_NOT_FOUND", "WORKER_NOT_FOUND", "LEASE_NOT_FOUND", "SERVER_ID_TAKEN", "SERVER_NOT_READY", "SERVER_FULL", "SERVER_UNSUITABLE", "RELEASED", "ABORTED", "VERSION_NOT_FOUND", "VERSION_MISMATCH", "JOB_NOT_FOUND", "JOB_IN_USE", "POOL_IN_USE", "ROUND_NOT_FOUND", "ROUND_CONFLICT", "ROUND_CLOSED", "ROUND_CANCELLED", "ROUND_NOT_OPEN", "ROUND_NOT_COMPLETED", "ROUND_MISMATCH", "ROUND_SETTLING", "SNAPSHOT_EXISTS", "SNAPSHOT_NOT_FOUND", "RESTORE_UNFINISHED", "PLAN_STALE", "DUPLICATE_GROUP", "GROUP_NOT_FOUND", "REQUEST_NOT_FOUND", "WEIGHT_SYNC_CONFLICT", "WEIGHT_SYNC_NOT_FOUND", "WEIGHT_SYNC_ENDED", "WEIGHT_VERSION_MISMATCH", "WEIGHT_VERSION_STALE", "WEIGHTS_NOT_QUIESCED", "PLAN_NOT_FOUND", "PAYLOAD_NOT_FOUND", "PAYLOAD_FOREIGN", "PAYLOAD_EXISTS", "PAYLOAD_INCOMPLETE", "PAYLOAD_STORE_FULL", "ENGINE_UNREACHABLE", "ENGINE_BUSY", "ENGINE_PROTOCOL", "ENGINE_ERROR", "ENGINE_STALLED", "CONTEXT_TOO_LONG", "MODEL_NOT_FOUND", "ENGINE_REJECTED"]
FailReason = Literal["engine-error", "engine-rejected", "engine-abort", "no-server", "payload", "aborted", "shutdown", "unclaimed", "payload-full", "timeout"]
GroupPlacement = Literal["group-spread", "group-affinity", "auto"]
LogLevel = Literal["fatal", "error", "warn", "info", "debug", "trace"]
MoveMeans = Literal["bind", "recompute", "transfer"]
MoveRefusal = Literal["unknown-request", "unknown-lease", "victim-changed", "ending", "same-server", "moved-too-often", "server-not-found", "server-changed", "server-full", "server-pending", "server-suspect", "server-failed", "server-draining", "server-cordoned", "server-quarantined"]
MoveState = Literal["planned", "sent", "moved", "completed-first", "superseded", "expired", "refused"]
NoMoveReason = Literal["balanced", "no-room", "held-back", "not-worth-it"]
PauseMode = Literal["abort", "wait", "keep"]
PoolEvent = Union["RoundOpenedEvent", "RoundSubmittedEvent", "RoundProgressedEvent", "RoundCompletedEvent", "RoundSettledEvent", "RoundClosedEvent", "RoundCancelledEvent", "RequestFinishedEvent", "AttemptEndedEvent", "RequestAbortedEvent", "RequestLostEvent", "GroupFailedEvent", "GroupDroppedEvent", "LongtailRequeuedEvent", "JobTakenOverEvent", "JobReconciledEvent", "JobSnapshottedEvent", "JobRestoredEvent", "WeightsBegunEvent", "WeightsCommittedEvent", "WeightsRolledBackEvent", "ServerPausedEvent", "ServerResumedEvent", "ServerFencedEvent", "ServerHungEvent", "PoolSetBackEvent"]
PoolSettingName = Literal["policy", "affinityBreakMargin", "affinityBreakMaxContextTokens", "groupPlacement", "groupAffinityCap", "groupSpreadBelowTokens", "groupSpreadAboveKvUse", "sessionIdleMs", "maxSessions", "decisionSampleEvery", "poolMaxInflight", "requiredWeightVersion", "slowStartMs", "slowStartFraction", "breakerFailures", "breakerOpenMs", "adaptiveConcurrency", "adaptIntervalMs"]
RebalancePolicy = Literal["tier-cost", "tier-min"]
ReleaseOutcome = Literal["finished", "failed", "rejected", "aborted", "unclaimed", "busy"]
ReturnReason = Union["FailReason", Literal["worker-lost"], Literal["internal"]]
RewardOutcome = Literal["kept", "excluded", "replaced"]
RoundKind = Literal["short", "long"]
RoundState = Literal["opening", "open", "completed", "closed", "cancelled"]
RoutingPolicy = Literal["least-inflight", "least-tokens", "least-sessions", "round-robin", "consistent-hash", "random", "power-of-two"]
ServerState = Literal["pending", "ready", "suspect", "failed", "draining", "removed", "quarantined", "cordoned"]
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
        self, operation: Literal["request.complete"], body: CompleteRequest, *, deadline: float = ...
    ) -> CompleteReply: ...

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
