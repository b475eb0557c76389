import { buildSubject } from '@broomwagon/contracts';
import { AcquireBodies, leaseIdIn, releaseBody } from './acquire-bodies';
import type { Job, JobResult } from './jobs';
import { Measurement } from './measurement';
import type { NatsSocket } from './nats-socket';

type JobOf<Kind extends Job['kind']> = Extract<Job, { kind: Kind }>;
/** A running load, which receives the replies to its requests. */
export interface RunningLoad {
  reply(token: string, body: string): void;
  readonly done: Promise<JobResult>;
}

/** Load with `window` requests in flight during the measurement: the next request is sent when one is answered. */
export function closedLoop(socket: NatsSocket, job: JobOf<'echo' | 'acquire' | 'pairs'>): RunningLoad {
  const bodies = new AcquireBodies(job.workers, job.sessions);
  const measurement = new Measurement(job);
  const acquireSubject = job.kind === 'echo' ? job.subject : buildSubject(job.pool, 'lb.acquire');
  const releaseSubject = buildSubject(job.pool, 'lb.release');
  const sentAtMs = new Float64Array(job.window);
  const acquireIds = new Array<string>(job.window);
  /** Latency of the pair's acquire; -1 until it is answered. */
  const acquiredAfterMs = new Float64Array(job.window).fill(-1);
  const held: string[] = [];
  let open = job.window;
  let finish: (result: JobResult) => void;
  const done = new Promise<JobResult>((resolve) => (finish = resolve));

  function begin(slot: number): void {
    if (measurement.isOver) {
      if (--open === 0) finish(measurement.result(held));
      return;
    }
    const acquireId = bodies.nextId();
    acquireIds[slot] = acquireId;
    sentAtMs[slot] = performance.now();
    socket.request(acquireSubject, slot, bodies.acquire(acquireId));
  }

  function reply(token: string, body: string): void {
    const slot = Number(token);
    if (job.kind === 'pairs') {
      if (acquiredAfterMs[slot]! < 0) {
        acquiredAfterMs[slot] = performance.now() - sentAtMs[slot]!;
        socket.request(releaseSubject, slot, releaseBody(leaseIdIn(body)));
        return;
      }
      // The pair counts when it ends, with the latency of its acquire.
      measurement.ended(performance.now() - acquiredAfterMs[slot]!);
      acquiredAfterMs[slot] = -1;
    } else {
      if (job.kind === 'acquire') {
        leaseIdIn(body);
        held.push(acquireIds[slot]!);
      }
      measurement.ended(sentAtMs[slot]!);
    }
    begin(slot);
  }

  for (let slot = 0; slot < job.window; slot++) begin(slot);
  return { reply, done };
}

const OPEN_LOOP_TICK_MS = 1;
const OPEN_LOOP_GRACE_MS = 5_000;

/** Sends acquires when they are due, and releases each granted lease; latency counts from the due time. */
export function openLoop(socket: NatsSocket, job: JobOf<'open'>): RunningLoad {
  const bodies = new AcquireBodies(job.workers, job.sessions);
  const measurement = new Measurement(job);
  const acquireSubject = buildSubject(job.pool, 'lb.acquire');
  const releaseSubject = buildSubject(job.pool, 'lb.release');
  const dueAtMs = new Map<string, number>();
  const startedAtMs = performance.now();
  let sent = 0;
  let releasing = 0;
  let overAtMs = 0;
  let settle: { resolve(result: JobResult): void; reject(error: Error): void };
  const done = new Promise<JobResult>((resolve, reject) => (settle = { resolve, reject }));

  const timer = setInterval(() => {
    const now = performance.now();
    if (measurement.isOver) {
      overAtMs ||= now;
      if (dueAtMs.size === 0 && releasing === 0) settle.resolve(measurement.result());
      else if (now - overAtMs > OPEN_LOOP_GRACE_MS) settle.reject(new Error(`${dueAtMs.size} acquires have no reply`));
      else return;
      clearInterval(timer);
      return;
    }
    for (;;) {
      const due = startedAtMs + (sent * 1_000) / job.ratePerSecond;
      if (due > now) return;
      const token = String(sent++);
      dueAtMs.set(token, due);
      socket.request(acquireSubject, token, bodies.acquire(bodies.nextId()));
    }
  }, OPEN_LOOP_TICK_MS);

  function reply(token: string, body: string): void {
    const due = dueAtMs.get(token);
    if (due === undefined) {
      releasing--;
      return;
    }
    dueAtMs.delete(token);
    measurement.ended(due);
    releasing++;
    socket.request(releaseSubject, 'release', releaseBody(leaseIdIn(body)));
  }
  return { reply, done };
}

/** Bursts of `count` acquires, one after the other; the leases of a burst are released before the next. */
export function bursts(socket: NatsSocket, job: JobOf<'many'>): RunningLoad {
  const bodies = new AcquireBodies(job.workers, job.sessions);
  const measurement = new Measurement(job);
  let sentAtMs = 0;
  let finish: (result: JobResult) => void;
  const done = new Promise<JobResult>((resolve) => (finish = resolve));

  function begin(): void {
    if (measurement.isOver) {
      finish(measurement.result());
      return;
    }
    const body = bodies.acquireMany(Array.from({ length: job.count }, () => bodies.nextId()));
    sentAtMs = performance.now();
    socket.request(buildSubject(job.pool, 'lb.acquire-many'), 'acquire', body);
  }

  function reply(token: string, body: string): void {
    if (token !== 'acquire') {
      begin();
      return;
    }
    measurement.ended(sentAtMs);
    const { leases } = JSON.parse(body) as { leases: { leaseId?: string }[] };
    const releases = leases.map(({ leaseId }) => ({ leaseId, outcome: 'finished' }));
    if (releases.length !== job.count || releases.some(({ leaseId }) => leaseId === undefined)) {
      throw new Error(`Not all of a burst were granted: ${body.slice(0, 300)}`);
    }
    socket.request(buildSubject(job.pool, 'lb.release-many'), 'release', JSON.stringify({ releases }));
  }
  begin();
  return { reply, done };
}
