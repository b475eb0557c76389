"""An exception for each error code of the protocol (docs/protocol/errors.md)."""

# Made by `npm run schema` from docs/protocol/asyncapi.json. Do not edit.

from __future__ import annotations

from ._error import BroomwagonError


class MalformedJson(BroomwagonError):
    """The body is not a JSON object."""

    code = "MALFORMED_JSON"


class ValidationFailed(BroomwagonError):
    """A field is missing, unknown, of the wrong type or out of bounds."""

    code = "VALIDATION_FAILED"


class PayloadTooLarge(BroomwagonError):
    """A body, prompt or chunk is over its limit."""

    code = "PAYLOAD_TOO_LARGE"


class NotFoundSubject(BroomwagonError):
    """No handler owns this subject."""

    code = "NOT_FOUND_SUBJECT"


class Unauthenticated(BroomwagonError):
    """The bearer token is missing, unknown, revoked or expired."""

    code = "UNAUTHENTICATED"


class TokenNotFound(BroomwagonError):
    """No token has this id, or it was revoked."""

    code = "TOKEN_NOT_FOUND"


class Forbidden(BroomwagonError):
    """The token, or the user of NATS, does not allow this operation or this pool."""

    code = "FORBIDDEN"


class RouteNotFound(BroomwagonError):
    """There is no such path."""

    code = "ROUTE_NOT_FOUND"


class MethodNotAllowed(BroomwagonError):
    """The path has other methods; see the header Allow."""

    code = "METHOD_NOT_ALLOWED"


class UnsupportedMediaType(BroomwagonError):
    """The body must be application/json."""

    code = "UNSUPPORTED_MEDIA_TYPE"


class IdempotencyKeyReused(BroomwagonError):
    """The Idempotency-Key was used for another request."""

    code = "IDEMPOTENCY_KEY_REUSED"


class RequestInProgress(BroomwagonError):
    """A request with this id or Idempotency-Key is still being processed."""

    code = "REQUEST_IN_PROGRESS"


class OutcomeUnknown(BroomwagonError):
    """The first request with this Idempotency-Key may have taken effect: its replica died, or a service
    did not answer.
    """

    code = "OUTCOME_UNKNOWN"


class RateLimited(BroomwagonError):
    """Too many requests of this token or address; repeat after retryAfterMs."""

    code = "RATE_LIMITED"


class ReplyFull(BroomwagonError):
    """The reply has no room for this item; send the item again with fewer other items."""

    code = "REPLY_FULL"


class Overloaded(BroomwagonError):
    """The service handles too many requests; repeat after retryAfterMs."""

    code = "OVERLOADED"


class ShuttingDown(BroomwagonError):
    """This replica is shutting down; another replica will answer."""

    code = "SHUTTING_DOWN"


class Unavailable(BroomwagonError):
    """A store or service that this call needs did not answer."""

    code = "UNAVAILABLE"


class StoreFull(BroomwagonError):
    """Redis is near its maxmemory: submits, claims and acquires are refused until memory is freed."""

    code = "STORE_FULL"


class SchemaUnsupported(BroomwagonError):
    """This replica does not support the schema version of the pool; the message names what to update."""

    code = "SCHEMA_UNSUPPORTED"


class Timeout(BroomwagonError):
    """No answer within the deadline of the call."""

    code = "TIMEOUT"


class Internal(BroomwagonError):
    """A defect; the log of the service has the details."""

    code = "INTERNAL"


class Fenced(BroomwagonError):
    """The epoch or attempt is not the current one; register again or take the job over."""

    code = "FENCED"


class GenerationChanged(BroomwagonError):
    """Redis was restarted or has lost its last changes. Take the job over and reconcile it."""

    code = "GENERATION_CHANGED"


class NoServerAvailable(BroomwagonError):
    """No server of the pool both takes leases and meets the constraints; see details.reason."""

    code = "NO_SERVER_AVAILABLE"


class ServersFull(BroomwagonError):
    """Every server that meets the constraints is full, or the pool is full; use waitMs to wait for room."""

    code = "SERVERS_FULL"


class WaitTimeout(BroomwagonError):
    """No room became free within waitMs; see details.reason. The caller decides whether to wait longer."""

    code = "WAIT_TIMEOUT"


class QueueFull(BroomwagonError):
    """The queue of waiting calls is full, or a gateway runs as many generations as it may."""

    code = "QUEUE_FULL"


class PoolNotFound(BroomwagonError):
    """There is no such pool: its first server or job makes it."""

    code = "POOL_NOT_FOUND"


class PoolPaused(BroomwagonError):
    """The pool is paused, or its weights are being changed: no lease is granted and no request is claimed."""

    code = "POOL_PAUSED"


class NoCapableServer(BroomwagonError):
    """No engine of the pool has the required capabilities."""

    code = "NO_CAPABLE_SERVER"


class SessionConflict(BroomwagonError):
    """The session has another parent, or is an ancestor of the named parent; name the parent of its first
    acquire.
    """

    code = "SESSION_CONFLICT"


class SessionNotFound(BroomwagonError):
    """No session of this key is recorded under this id; POST /sessions begins one."""

    code = "SESSION_NOT_FOUND"


class ServerNotFound(BroomwagonError):
    """No such server in the pool."""

    code = "SERVER_NOT_FOUND"


class ReplicaNotFound(BroomwagonError):
    """No running replica has this service name or id; see details."""

    code = "REPLICA_NOT_FOUND"


class WorkerNotFound(BroomwagonError):
    """No worker with this id is registered in the pool; register it."""

    code = "WORKER_NOT_FOUND"


class LeaseNotFound(BroomwagonError):
    """No such lease, or it belongs to another worker."""

    code = "LEASE_NOT_FOUND"


class ServerIdTaken(BroomwagonError):
    """Another engine, which answers at another address, is registered under this id; remove it or choose
    another id.
    """

    code = "SERVER_ID_TAKEN"


class ServerNotReady(BroomwagonError):
    """The named server takes no leases at present."""

    code = "SERVER_NOT_READY"


class ServerFull(BroomwagonError):
    """The named server has no room."""

    code = "SERVER_FULL"


class ServerUnsuitable(BroomwagonError):
    """The named server does not meet the constraints of the acquire."""

    code = "SERVER_UNSUITABLE"


class Released(BroomwagonError):
    """This acquireId was released before it was granted."""

    code = "RELEASED"


class Aborted(BroomwagonError):
    """The acquire was aborted before it was granted."""

    code = "ABORTED"


class VersionNotFound(BroomwagonError):
    """The history of the settings does not have this version."""

    code = "VERSION_NOT_FOUND"


class VersionMismatch(BroomwagonError):
    """The settings have another version than the caller has read."""

    code = "VERSION_MISMATCH"


class JobNotFound(BroomwagonError):
    """No such job in the pool."""

    code = "JOB_NOT_FOUND"


class JobInUse(BroomwagonError):
    """The job has an open round or requests in transition, or it is being deleted."""

    code = "JOB_IN_USE"


class PoolInUse(BroomwagonError):
    """The pool has servers, workers, waiting calls or open rounds; see details.inUse."""

    code = "POOL_IN_USE"


class RoundNotFound(BroomwagonError):
    """No such round in the job."""

    code = "ROUND_NOT_FOUND"


class RoundConflict(BroomwagonError):
    """This round is open with other parameters, or another round is open."""

    code = "ROUND_CONFLICT"


class RoundClosed(BroomwagonError):
    """The round is closed."""

    code = "ROUND_CLOSED"


class RoundCancelled(BroomwagonError):
    """The round was cancelled; its groups were requeued or dropped."""

    code = "ROUND_CANCELLED"


class RoundNotOpen(BroomwagonError):
    """The round accepts no more groups."""

    code = "ROUND_NOT_OPEN"


class RoundNotCompleted(BroomwagonError):
    """The round does not have all its groups yet."""

    code = "ROUND_NOT_COMPLETED"


class RoundMismatch(BroomwagonError):
    """The results that were read differ from those of the round; read them from the beginning. See
    details.
    """

    code = "ROUND_MISMATCH"


class RoundSettling(BroomwagonError):
    """Cut requests of an earlier round are still being confirmed."""

    code = "ROUND_SETTLING"


class SnapshotExists(BroomwagonError):
    """The tag names a snapshot of another state of the job."""

    code = "SNAPSHOT_EXISTS"


class SnapshotNotFound(BroomwagonError):
    """No complete snapshot has this tag; job.snapshots lists them."""

    code = "SNAPSHOT_NOT_FOUND"


class RestoreUnfinished(BroomwagonError):
    """The job is being restored; repeat job.restore until it ends."""

    code = "RESTORE_UNFINISHED"


class PlanStale(BroomwagonError):
    """The plan was made for a state that has changed; call round.next again."""

    code = "PLAN_STALE"


class DuplicateGroup(BroomwagonError):
    """The groupId is already in use."""

    code = "DUPLICATE_GROUP"


class GroupNotFound(BroomwagonError):
    """No such group in the job, or the round has not accepted it."""

    code = "GROUP_NOT_FOUND"


class RequestNotFound(BroomwagonError):
    """No such request in the pool."""

    code = "REQUEST_NOT_FOUND"


class WeightSyncConflict(BroomwagonError):
    """Another change of the weights of the pool is in progress."""

    code = "WEIGHT_SYNC_CONFLICT"


class WeightSyncNotFound(BroomwagonError):
    """No such change of weights."""

    code = "WEIGHT_SYNC_NOT_FOUND"


class WeightSyncEnded(BroomwagonError):
    """The change of weights has already ended in another way."""

    code = "WEIGHT_SYNC_ENDED"


class WeightVersionMismatch(BroomwagonError):
    """No engine has this weight version; see details. Leave the version out, or commit it first."""

    code = "WEIGHT_VERSION_MISMATCH"


class WeightVersionStale(BroomwagonError):
    """The pool has a newer weight version."""

    code = "WEIGHT_VERSION_STALE"


class WeightsNotQuiesced(BroomwagonError):
    """Requests still run with the old weights."""

    code = "WEIGHTS_NOT_QUIESCED"


class PlanNotFound(BroomwagonError):
    """No such plan in the pool, or it has expired."""

    code = "PLAN_NOT_FOUND"


class PayloadNotFound(BroomwagonError):
    """No payload has this reference."""

    code = "PAYLOAD_NOT_FOUND"


class PayloadForeign(BroomwagonError):
    """The reference names a payload of another pool, job, group or request."""

    code = "PAYLOAD_FOREIGN"


class PayloadExists(BroomwagonError):
    """Another payload has this name; a complete payload never changes."""

    code = "PAYLOAD_EXISTS"


class PayloadIncomplete(BroomwagonError):
    """Chunks of the payload are missing."""

    code = "PAYLOAD_INCOMPLETE"


class PayloadStoreFull(BroomwagonError):
    """The payload quota of the job is used up, or the payload store has no room."""

    code = "PAYLOAD_STORE_FULL"


class EngineUnreachable(BroomwagonError):
    """The engine does not answer."""

    code = "ENGINE_UNREACHABLE"


class EngineBusy(BroomwagonError):
    """The engine, or a proxy before it, cannot serve now (429, 503 and others); repeat after retryAfterMs."""

    code = "ENGINE_BUSY"


class EngineProtocol(BroomwagonError):
    """The engine uses another protocol than expected."""

    code = "ENGINE_PROTOCOL"


class EngineError(BroomwagonError):
    """The engine answered with an error."""

    code = "ENGINE_ERROR"


class EngineStalled(BroomwagonError):
    """The engine sent nothing within the stall timeout."""

    code = "ENGINE_STALLED"


class ContextTooLong(BroomwagonError):
    """The prompt and the budget have more tokens than the context of the model."""

    code = "CONTEXT_TOO_LONG"


class ModelNotFound(BroomwagonError):
    """No engine of the pool serves the model that the request names."""

    code = "MODEL_NOT_FOUND"


class EngineRejected(BroomwagonError):
    """The engine refused the request itself (4xx)."""

    code = "ENGINE_REJECTED"


BY_CODE: dict[str, type[BroomwagonError]] = {
    "MALFORMED_JSON": MalformedJson,
    "VALIDATION_FAILED": ValidationFailed,
    "PAYLOAD_TOO_LARGE": PayloadTooLarge,
    "NOT_FOUND_SUBJECT": NotFoundSubject,
    "UNAUTHENTICATED": Unauthenticated,
    "TOKEN_NOT_FOUND": TokenNotFound,
    "FORBIDDEN": Forbidden,
    "ROUTE_NOT_FOUND": RouteNotFound,
    "METHOD_NOT_ALLOWED": MethodNotAllowed,
    "UNSUPPORTED_MEDIA_TYPE": UnsupportedMediaType,
    "IDEMPOTENCY_KEY_REUSED": IdempotencyKeyReused,
    "REQUEST_IN_PROGRESS": RequestInProgress,
    "OUTCOME_UNKNOWN": OutcomeUnknown,
    "RATE_LIMITED": RateLimited,
    "REPLY_FULL": ReplyFull,
    "OVERLOADED": Overloaded,
    "SHUTTING_DOWN": ShuttingDown,
    "UNAVAILABLE": Unavailable,
    "STORE_FULL": StoreFull,
    "SCHEMA_UNSUPPORTED": SchemaUnsupported,
    "TIMEOUT": Timeout,
    "INTERNAL": Internal,
    "FENCED": Fenced,
    "GENERATION_CHANGED": GenerationChanged,
    "NO_SERVER_AVAILABLE": NoServerAvailable,
    "SERVERS_FULL": ServersFull,
    "WAIT_TIMEOUT": WaitTimeout,
    "QUEUE_FULL": QueueFull,
    "POOL_NOT_FOUND": PoolNotFound,
    "POOL_PAUSED": PoolPaused,
    "NO_CAPABLE_SERVER": NoCapableServer,
    "SESSION_CONFLICT": SessionConflict,
    "SESSION_NOT_FOUND": SessionNotFound,
    "SERVER_NOT_FOUND": ServerNotFound,
    "REPLICA_NOT_FOUND": ReplicaNotFound,
    "WORKER_NOT_FOUND": WorkerNotFound,
    "LEASE_NOT_FOUND": LeaseNotFound,
    "SERVER_ID_TAKEN": ServerIdTaken,
    "SERVER_NOT_READY": ServerNotReady,
    "SERVER_FULL": ServerFull,
    "SERVER_UNSUITABLE": ServerUnsuitable,
    "RELEASED": Released,
    "ABORTED": Aborted,
    "VERSION_NOT_FOUND": VersionNotFound,
    "VERSION_MISMATCH": VersionMismatch,
    "JOB_NOT_FOUND": JobNotFound,
    "JOB_IN_USE": JobInUse,
    "POOL_IN_USE": PoolInUse,
    "ROUND_NOT_FOUND": RoundNotFound,
    "ROUND_CONFLICT": RoundConflict,
    "ROUND_CLOSED": RoundClosed,
    "ROUND_CANCELLED": RoundCancelled,
    "ROUND_NOT_OPEN": RoundNotOpen,
    "ROUND_NOT_COMPLETED": RoundNotCompleted,
    "ROUND_MISMATCH": RoundMismatch,
    "ROUND_SETTLING": RoundSettling,
    "SNAPSHOT_EXISTS": SnapshotExists,
    "SNAPSHOT_NOT_FOUND": SnapshotNotFound,
    "RESTORE_UNFINISHED": RestoreUnfinished,
    "PLAN_STALE": PlanStale,
    "DUPLICATE_GROUP": DuplicateGroup,
    "GROUP_NOT_FOUND": GroupNotFound,
    "REQUEST_NOT_FOUND": RequestNotFound,
    "WEIGHT_SYNC_CONFLICT": WeightSyncConflict,
    "WEIGHT_SYNC_NOT_FOUND": WeightSyncNotFound,
    "WEIGHT_SYNC_ENDED": WeightSyncEnded,
    "WEIGHT_VERSION_MISMATCH": WeightVersionMismatch,
    "WEIGHT_VERSION_STALE": WeightVersionStale,
    "WEIGHTS_NOT_QUIESCED": WeightsNotQuiesced,
    "PLAN_NOT_FOUND": PlanNotFound,
    "PAYLOAD_NOT_FOUND": PayloadNotFound,
    "PAYLOAD_FOREIGN": PayloadForeign,
    "PAYLOAD_EXISTS": PayloadExists,
    "PAYLOAD_INCOMPLETE": PayloadIncomplete,
    "PAYLOAD_STORE_FULL": PayloadStoreFull,
    "ENGINE_UNREACHABLE": EngineUnreachable,
    "ENGINE_BUSY": EngineBusy,
    "ENGINE_PROTOCOL": EngineProtocol,
    "ENGINE_ERROR": EngineError,
    "ENGINE_STALLED": EngineStalled,
    "CONTEXT_TOO_LONG": ContextTooLong,
    "MODEL_NOT_FOUND": ModelNotFound,
    "ENGINE_REJECTED": EngineRejected,
}
