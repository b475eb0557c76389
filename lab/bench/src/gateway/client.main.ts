import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { answerParent } from '../child';
import { summarizeLatencies, type LatencySummary } from '../arithmetic';
import { readCpuSeconds } from '../generator/measurement';

/** Jobs of the program. */
export type ClientJob =
  /** Sends short requests, at a fixed rate or with `inFlight` calls at a time. */
  | { kind: 'rate'; url: string; body: string; perSecond: number; ms: number }
  | { kind: 'closed'; url: string; body: string; inFlight: number; ms: number; processIds: number[] }
  /** Starts so many responses, which are received and not parsed. */
  | { kind: 'open'; port: number; body: string; count: number }
  /** Ends these responses. */
  | { kind: 'close' };

export interface ClientResult extends Partial<LatencySummary> {
  completed: number;
  /** Number of answers other than 200 and of broken connections. */
  failed: number;
  /** CPU time of the processes during the job. */
  cpuSeconds?: number;
}

/** Number of connections that are opened at the same time. */
const AT_ONCE = 64;
const dispatcher = new Agent({ connections: 512, keepAliveTimeout: 600_000 });
const sockets = new Set<Socket>();
let failed = 0;

async function call(url: string, body: string): Promise<void> {
  const headers = { 'content-type': 'application/json' };
  const answer = await request(`${url}/generate`, { method: 'POST', headers, body, dispatcher });
  await answer.body.arrayBuffer();
  if (answer.statusCode !== 200) throw new Error(`Answer ${answer.statusCode}`);
}

/** Sends requests at a fixed rate; latency counts from the time at which a request was due. */
async function atRate({ url, body, perSecond, ms }: Extract<ClientJob, { kind: 'rate' }>): Promise<ClientResult> {
  const count = (perSecond * ms) / 1_000;
  const latenciesMs: number[] = [];
  let lost = 0;
  const beganAtMs = performance.now();
  const one = async (index: number): Promise<void> => {
    const dueMs = beganAtMs + (index * 1_000) / perSecond;
    await call(url, body).then(
      () => latenciesMs.push(performance.now() - dueMs),
      () => (lost += 1),
    );
  };
  const calls: Promise<void>[] = [];
  while (calls.length < count) {
    const due = Math.min(count, Math.ceil(((performance.now() - beganAtMs) / 1_000) * perSecond));
    while (calls.length < due) calls.push(one(calls.length));
    await delay(1);
  }
  await Promise.all(calls);
  return { completed: latenciesMs.length, failed: lost, ...summarizeLatencies(latenciesMs) };
}

async function closedLoop(job: Extract<ClientJob, { kind: 'closed' }>): Promise<ClientResult> {
  const { url, body, inFlight, ms, processIds } = job;
  const cpuSeconds = () => processIds.reduce((sum, id) => sum + readCpuSeconds(id), 0);
  const cpuAtStart = cpuSeconds();
  const endsAtMs = performance.now() + ms;
  let completed = 0;
  let lost = 0;
  const one = async (): Promise<void> => {
    while (performance.now() < endsAtMs) {
      await call(url, body).then(
        () => (completed += 1),
        () => (lost += 1),
      );
    }
  };
  await Promise.all(Array.from({ length: inFlight }, one));
  return { completed, failed: lost, cpuSeconds: cpuSeconds() - cpuAtStart };
}

async function open({ port, body, count }: Extract<ClientJob, { kind: 'open' }>): Promise<ClientResult> {
  const head = `POST /generate HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
  failed = 0;
  const one = (): Promise<void> =>
    new Promise((resolve) => {
      const socket = connect(port, '127.0.0.1', () => {
        socket.write(`${head}\r\n\r\n${body}`);
        resolve();
      });
      sockets.add(socket);
      // Without a listener for data the stream would stop.
      socket.resume();
      socket.on('error', () => undefined).once('close', () => (failed += Number(sockets.delete(socket))));
    });
  for (let first = 0; first < count; first += AT_ONCE) {
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, count - first) }, one));
  }
  return { completed: 0, failed };
}

answerParent<ClientJob, ClientResult>(async (job) => {
  if (job.kind === 'rate') return atRate(job);
  if (job.kind === 'closed') return closedLoop(job);
  if (job.kind === 'open') return open(job);
  const lost = failed;
  const all = [...sockets];
  sockets.clear();
  for (const socket of all) socket.destroy();
  return { completed: all.length, failed: lost };
});
