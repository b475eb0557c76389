import { summarizeLatencies } from '../arithmetic';
import { readCpuSeconds } from './measurement';
import type { JobResult, ListJob } from './jobs';
import type { RunningLoad } from './loads';
import type { NatsSocket } from './nats-socket';

/** Load of a list of prepared requests, each of which can be sent only once. */
export function listLoad(socket: NatsSocket, job: ListJob): RunningLoad {
  const { subject, bodies, window, processIds = [], keepReplies } = job;
  const sentAtMs = new Float64Array(bodies.length);
  const latenciesMs: number[] = [];
  const replies = keepReplies ? new Array<string>(bodies.length) : undefined;
  const cpuAtStart = processIds.map(readCpuSeconds);
  const startedAtMs = performance.now();
  let sent = 0;
  let finish: (result: JobResult) => void;
  const done = new Promise<JobResult>((resolve) => (finish = resolve));

  function next(): void {
    if (sent >= bodies.length) return;
    sentAtMs[sent] = performance.now();
    socket.request(subject, sent, bodies[sent]!);
    sent++;
  }

  function reply(token: string, body: string): void {
    const index = Number(token);
    latenciesMs.push(performance.now() - sentAtMs[index]!);
    if (replies) replies[index] = body;
    next();
    if (latenciesMs.length < bodies.length) return;
    const seconds = (performance.now() - startedAtMs) / 1_000;
    finish({
      ...summarizeLatencies(latenciesMs),
      completed: bodies.length,
      seconds,
      perSecond: bodies.length / seconds,
      cpuSeconds: processIds.map((id, place) => readCpuSeconds(id) - cpuAtStart[place]!),
      heldAcquireIds: [],
      replies,
    });
  }

  for (let slot = 0; slot < window; slot++) next();
  return { reply, done };
}
