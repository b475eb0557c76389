/** Bounds of the protocol. A value over one is a typed error, never a truncation. */
export const LIMITS = {
  /** Largest integer: the JSON of Redis writes 14 digits of a number, and no exponent may come into a key. */
  integer: 99_999_999_999_999,
  /** Body of any NATS message, bytes; below the default max_payload of nats-server (1 MiB). */
  bodyBytes: 1_000_000,
  /** A prompt given inline in `round.submit`, bytes of its JSON. */
  inlinePromptBytes: 32_768,
  /** Sampling parameters of a group, bytes of their JSON: they travel with every claim of its requests. */
  samplingBytes: 4_096,
  /** One chunk of a payload before base64, bytes. */
  payloadChunkBytes: 262_144,
  /** Chunks of one payload: 64 MiB in all. */
  payloadChunks: 256,
  /** Groups in one page of `round.submit`. */
  groupsPerSubmit: 128,
  /** Groups a round may need. */
  groupsPerRound: 65_536,
  /** Samples of one group, with samples launched above its need: a script that moves a group moves all of them. */
  samplesPerGroup: 128,
  /** JSON of a request's segments in a claim or result; above it they are read with `request.segments`. */
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
  /** Names of models that are stored of one engine, bytes in all: a page of servers has them of 128 engines. */
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
  /** Longest an abort may refuse later acquires of the requests it names, milliseconds. */
  refuseAcquiresMs: 600_000,
  /** Token budget of one sample. */
  maxTokens: 10_000_000,
  /** Entities in one page of any list. */
  page: 128,
} as const;
