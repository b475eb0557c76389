/**
 * What the parts cost, as lab/bench/README.md has measured it on one core of an AMD EPYC; the comment names the section.
 * CPU times are microseconds. Redis: its main thread with warm caches, calls one by one, as under a low load.
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
    /** bench coordinator (a claim in pages of 128) and bench cost (an acquire in a burst): all begin at the same time. */
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
  /** bench acquire: an acquire, and its release as much */
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
    /** bench gateway: a collected token, by the same code, one in each chunk */
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
    /** the most that were held open */
    streams: 4_000,
  },
} as const;
