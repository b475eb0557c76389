/**
 * Measured costs of the parts, from the sections of lab/bench/README.md that the comments name, on one core of an AMD
 * EPYC. CPU times are microseconds. Redis: main thread with warm caches, calls one by one, as under a low load.
 */
export const MEASURED = {
  redis: {
    /** bench coordinator */
    submitUs: 12,
    /** bench cost */
    claimUs: 60,
    acquireUs: 52,
    releaseUs: 34,
    completeUs: 77,
    /** bench size: a partial save of 10 kB, with its payload in the same Redis */
    saveUs: 175,
    /** bench coordinator (a claim in pages of 128) and bench cost (an acquire in a burst): all start at once. */
    startUs: 29 + 17,
    /** docs/operations.md, memory of Redis */
    poolBytes: 5_000_000,
    runningBytes: 1_500,
    finishedBytes: 1_300,
    groupBytes: 650,
    leaseBytes: 480,
    serverBytes: 850,
    tokenBytes: 10,
  },
  /** bench acquire: an acquire, and as much for its release */
  loadBalancer: { pairUs: 2 * 20 },
  coordinator: {
    /** bench coordinator */
    requestUs: 10 + 44 + 59,
    /** bench size */
    saveUs: 35,
  },
  nats: {
    /** bench acquire: half of an acquire, which is a call and its reply */
    messageUs: 4,
  },
  worker: {
    /** bench gateway: a collected token, which the same code reads, one per chunk */
    tokenUs: 19,
    /** bench size */
    saveUs: 147,
    idleBytes: 128e6,
    streamBytes: 500_000,
  },
  gateway: {
    /** bench gateway: a token of a stream, and an open stream */
    tokenUs: 33,
    streamBytes: 36_000,
    /** most streams that were held open in a measurement */
    streams: 4_000,
  },
} as const;
