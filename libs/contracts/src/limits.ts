/** Bounds of the protocol. A value beyond its bound is a typed error, and is never truncated. */
export const LIMITS = {
  /** Largest integer. Redis writes larger numbers as JSON with an exponent, which must not be part of a key. */
  integer: 99_999_999_999_999,
  /** Body of any NATS message, bytes; below the default max_payload of nats-server (1 MiB). */
  bodyBytes: 1_000_000,
  /** Prompt inline in `round.submit`, bytes of JSON. */
  inlinePromptBytes: 32_768,
  /** Sampling parameters of a group, bytes of JSON. The limit is small because every claim has these parameters. */
  samplingBytes: 4_096,
  /** One chunk of a payload before base64, bytes. */
  payloadChunkBytes: 262_144,
  /** Chunks of one payload: 64 MiB in all. */
  payloadChunks: 256,
  /** Groups in one page of `round.submit`. */
  groupsPerSubmit: 128,
  /** Groups a round may need. */
  groupsPerRound: 65_536,
  /** Launched samples of one group. One Lua script handles all samples of a group. */
  samplesPerGroup: 128,
  /** Segments of a request in a claim or result, bytes of JSON. Larger lists are read with `request.segments`. */
  inlineSegmentsBytes: 131_072,
  /** Requests given out by one `request.claim`. */
  claimsPerCall: 128,
  /** Groups in one page of `job.reconcile`. */
  groupsPerReconcile: 1_024,
  /** Groups that `round.close` compares one by one. */
  groupsPerClose: 1_024,
  /** Groups in one `round.reward`. */
  groupsPerReward: 128,
  /** Groups in one page of `round.results`. */
  groupsPerResultsPage: 128,
  /** Acquires in one `lb.acquire-many`. */
  acquiresPerCall: 2_048,
  /** Name of a model or adapter, characters. */
  modelNameCharacters: 256,
  /** Stored names of the models of one engine, bytes in all. A page of servers has the names of 128 engines. */
  modelListBytes: 1_024,
  /** Servers one acquire may exclude. */
  excludedServers: 64,
  /** Decisions with their snapshots in one reply. */
  explainsPerCall: 16,
  /** Longest a call may be parked, milliseconds. */
  waitMs: 30_000,
  /** Longest time for which a busy engine gets no calls, milliseconds. */
  retryAfterMs: 300_000,
  /** Longest `timeoutMs` of a sample, milliseconds: a day. */
  timeoutMs: 86_400_000,
  /** Longest `refuseAcquiresMs` of an abort, milliseconds. */
  refuseAcquiresMs: 600_000,
  /** Token budget of one sample. */
  maxTokens: 10_000_000,
  /** Entities in one page of any list. */
  page: 128,
} as const;
