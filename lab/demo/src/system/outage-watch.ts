import { setTimeout as delay } from 'node:timers/promises';
import type { ServerId } from '@broomwagon/contracts';
import type { ServerHandle } from '@broomwagon/testing';
import type { Operations } from '../../../reference-trainer/src/loop/operations';
import { RunFailure } from './run-failure';

const POLL_MS = 1_000;

/** Options for outages of servers and engines that the run cannot restart. */
export interface OutageOptions {
  say: (line: string) => void;
  signal: AbortSignal;
  /** Longest outage before the run fails, milliseconds. */
  giveUpAfterMs: number;
  /** Pause between two checks, milliseconds. Default 1,000. */
  pollMs?: number;
}

/**
 * Watches a NATS or Redis server that was given by address, and prints when it stops answering and answers again.
 * @throws RunFailure when it has not answered for `giveUpAfterMs`
 */
export async function watchServer(server: ServerHandle, options: OutageOptions): Promise<void> {
  const { say, signal, giveUpAfterMs, pollMs = POLL_MS } = options;
  let silentSinceMs: number | undefined;
  while (!signal.aborted) {
    const answers = await server.answers().catch(() => false);
    if (signal.aborted) return;
    const nowMs = performance.now();
    if (answers && silentSinceMs !== undefined) {
      say(`${server.description} answers again after ${((nowMs - silentSinceMs) / 1_000).toFixed(1)} s`);
      silentSinceMs = undefined;
    } else if (!answers && silentSinceMs === undefined) {
      say(`${server.description} does not answer; waiting up to ${giveUpAfterMs / 1_000} s for it`);
      silentSinceMs = nowMs;
    } else if (!answers && nowMs - silentSinceMs! > giveUpAfterMs) {
      throw new RunFailure(`${server.description} has not answered for ${giveUpAfterMs / 1_000} s.`, [
        'Start it again, then start this run again.',
      ]);
    }
    await delay(pollMs, undefined, { signal }).catch(() => undefined);
  }
}

/**
 * Watches the states of the engines in the load-balancer, and prints a line when an engine stops being ready, and when
 * it is ready again.
 * @throws RunFailure when no engine has been ready for `giveUpAfterMs`
 */
export async function watchEngines(operations: Operations, options: OutageOptions): Promise<void> {
  const { say, signal, giveUpAfterMs, pollMs = POLL_MS } = options;
  const states = new Map<ServerId, string>();
  let noneSinceMs: number | undefined;
  for (;;) {
    await delay(pollMs, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return;
    // An unavailable NATS, Redis or load-balancer is reported by its own watch.
    const status = await operations.call('lb.status', {}).catch(() => undefined);
    if (status === undefined) continue;
    for (const { serverId, state } of status.perServer) {
      const before = states.get(serverId);
      states.set(serverId, state);
      if (isDown(state) && !isDown(before)) say(`${serverId} no longer answers (${state}); the run continues`);
      else if (isDown(before) && state === 'ready') say(`${serverId} is ready again`);
    }
    const nowMs = performance.now();
    const noneLeft = status.perServer.length > 0 && status.perServer.every(({ state }) => isDown(state));
    if (!noneLeft) noneSinceMs = undefined;
    else if (noneSinceMs === undefined) noneSinceMs = nowMs;
    else if (nowMs - noneSinceMs > giveUpAfterMs) {
      throw new RunFailure(`No engine has answered for ${giveUpAfterMs / 1_000} s.`, [
        'See the logs of the engines; unfinished requests are lost with this run.',
      ]);
    }
  }
}

function isDown(state: string | undefined): boolean {
  return state === 'suspect' || state === 'failed';
}
