import { setTimeout as delay } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { answerParent } from '../child';

/** A call that is not streamed, to engines or to gateways in turn. */
interface Call {
  urls: string[];
  body: string;
}

export type DirectQuestion =
  /** Makes so many calls, `inFlight` at a time, and parses the answers. */
  | (Call & { kind: 'calls'; count: number; inFlight: number })
  /** Starts so many calls, which stay open. */
  | (Call & { kind: 'hold'; count: number })
  /** Closes the connections of the calls that are open. */
  | { kind: 'drop' };

export interface DirectAnswer {
  answered: number;
  tokens: number;
}

/** Number of connections that are opened at the same time, and the pause after them. */
const AT_ONCE = 64;
const PAUSE_MS = 20;
// A machine that has other work accepts thousands of connections slowly.
const connect = { timeout: 240_000 };
const options = { connections: 16_384, headersTimeout: 0, bodyTimeout: 0, keepAliveTimeout: 600_000, connect };
const dispatcher = new Agent(options);
let held: { agent: Agent; failed: Error[]; dropped: boolean } | undefined;

async function call(url: string, body: string, agent: Agent): Promise<number> {
  const headers = { 'content-type': 'application/json' };
  const answer = await request(`${url}/v1/completions`, { method: 'POST', headers, body, dispatcher: agent });
  const { choices } = (await answer.body.json()) as { choices?: { token_ids: number[] }[] };
  if (answer.statusCode !== 200 || choices?.length !== 1) throw new Error(`Answer ${answer.statusCode}`);
  return choices[0]!.token_ids.length;
}

async function callAll({ urls, body, count, inFlight }: Extract<DirectQuestion, { kind: 'calls' }>) {
  const sum = { answered: 0, tokens: 0 };
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) {
      sum.tokens += await call(urls[next++ % urls.length]!, body, dispatcher);
      sum.answered += 1;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, lane));
  return sum;
}

async function hold({ urls, body, count }: Extract<DirectQuestion, { kind: 'hold' }>): Promise<void> {
  const state = (held ??= { agent: new Agent(options), failed: [], dropped: false });
  for (let index = 0; index < count; index++) {
    call(urls[index % urls.length]!, body, state.agent).catch((error: Error) => state.failed.push(error));
    if (index % AT_ONCE === AT_ONCE - 1) await delay(PAUSE_MS);
  }
}

/** A client that does not stream: the way of trainers that call their engines by themselves. */
answerParent<DirectQuestion, DirectAnswer>(async (question) => {
  if (question.kind === 'calls') return callAll(question);
  if (question.kind === 'hold') await hold(question);
  else {
    const [error] = held?.failed ?? [];
    if (error !== undefined) throw error;
    await held?.agent.destroy();
    held = undefined;
  }
  return { answered: 0, tokens: 0 };
});
