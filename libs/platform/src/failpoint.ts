import { setTimeout as delay } from 'node:timers/promises';

type Action = { kind: 'kill' } | { kind: 'stop' } | { kind: 'throw' } | { kind: 'delay'; durationMs: number };
interface Failpoint {
  action: Action;
  /** Number of the hit at which the failpoint acts; undefined: every hit. */
  atHit?: number;
  hits: number;
}

export class FailpointError extends Error {
  constructor(name: string) {
    super(`Failpoint ${name}`);
    this.name = 'FailpointError';
  }
}

let active: Map<string, Failpoint> | undefined;

/**
 * A named place where a fault test can break this process, with `FAILPOINTS=name=action[@N],…`. The actions are `kill`
 * (SIGKILL), `stop` (SIGSTOP), `throw` and `delay:MS`, at the N-th hit or at each hit. Without the variable, a
 * failpoint costs one map lookup.
 */
export function failpoint(name: string): Promise<void> | void {
  active ??= parseFailpoints(process.env.FAILPOINTS ?? '');
  const point = active.get(name);
  if (point === undefined) return;
  point.hits++;
  if (point.atHit === undefined || point.atHit === point.hits) return act(name, point.action);
}

/** Sets the failpoints of this process in place of FAILPOINTS; for tests. @throws Error for an invalid text */
export function setFailpoints(text: string): void {
  active = parseFailpoints(text);
}

function act(name: string, action: Action): Promise<void> | void {
  switch (action.kind) {
    case 'kill':
      process.kill(process.pid, 'SIGKILL');
      // Nothing after this line may run, even if the signal is late.
      return new Promise(() => undefined);
    case 'stop':
      process.kill(process.pid, 'SIGSTOP');
      return;
    case 'throw':
      throw new FailpointError(name);
    case 'delay':
      return delay(action.durationMs);
  }
}

function parseFailpoints(text: string): Map<string, Failpoint> {
  const points = new Map<string, Failpoint>();
  for (const entry of text.split(',').map((part) => part.trim())) {
    if (entry === '') continue;
    const parts = /^(?<name>[\w.-]+)=(?<kind>kill|stop|throw|delay)(?::(?<ms>\d+))?(?:@(?<hit>[1-9]\d*))?$/.exec(
      entry,
    )?.groups;
    if (parts === undefined || (parts.kind === 'delay') !== (parts.ms !== undefined)) {
      throw new Error(`FAILPOINTS: cannot read "${entry}"; expected name=kill|stop|throw|delay:MS[@N]`);
    }
    const kind = parts.kind as Action['kind'];
    const action: Action = kind === 'delay' ? { kind, durationMs: Number(parts.ms) } : { kind };
    const atHit = parts.hit === undefined ? undefined : Number(parts.hit);
    points.set(parts.name as string, { action, atHit, hits: 0 });
  }
  return points;
}
