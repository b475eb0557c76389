import type { LoadBalancerStatus } from '@broomwagon/contracts';
import type { ServerHandle } from '@broomwagon/testing';
import { afterEach, describe, expect, it } from 'vitest';
import type { Operations } from '../../../reference-trainer/src/loop/operations';
import { watchEngines, watchServer, type OutageOptions } from './outage-watch';

describe('the watch over servers and engines that the run has not started', () => {
  const said: string[] = [];
  let stopping = new AbortController();
  afterEach(() => {
    stopping.abort();
    stopping = new AbortController();
    said.length = 0;
  });
  const options = (giveUpAfterMs: number): OutageOptions => ({
    say: (line) => said.push(line),
    signal: stopping.signal,
    giveUpAfterMs,
    pollMs: 5,
  });
  const serverThat = (answers: () => Promise<boolean>) => ({ description: 'Redis at r:1', answers }) as ServerHandle;
  const createFleet = (states: () => string[]) =>
    ({
      call: async () =>
        ({
          perServer: states().map((state, index) => ({ serverId: `engine-${index}`, state })),
        }) as LoadBalancerStatus,
    }) as unknown as Operations;

  it('prints when a server stops answering and when it answers again, once each', async () => {
    let answers = true;
    let looks = 0;
    const server = serverThat(async () => {
      looks += 1;
      if (!answers) throw new Error('ECONNREFUSED');
      return true;
    });
    const watch = watchServer(server, options(60_000));
    await expect.poll(() => looks).toBeGreaterThan(2);
    answers = false;
    await expect.poll(() => said).toHaveLength(1);
    const looksThen = looks;
    await expect.poll(() => looks).toBeGreaterThan(looksThen + 2);
    answers = true;
    await expect.poll(() => said).toHaveLength(2);
    expect(said[0]).toMatch(/^Redis at r:1 does not answer; waiting up to 60 s/);
    expect(said[1]).toMatch(/^Redis at r:1 answers again after/);
    stopping.abort();
    await watch;
  });

  it('fails the run with the cause when a server does not answer for too long', async () => {
    await expect(
      watchServer(
        serverThat(async () => false),
        options(20),
      ),
    ).rejects.toThrow(/Redis at r:1 has not answered for 0\.02 s/);
  });

  it('prints when an engine fails and when it is ready again; the run continues', async () => {
    let states = ['ready', 'ready'];
    const watch = watchEngines(
      createFleet(() => states),
      options(0),
    );
    states = ['suspect', 'ready'];
    await expect.poll(() => said).toHaveLength(1);
    states = ['ready', 'ready'];
    await expect.poll(() => said).toHaveLength(2);
    expect(said).toEqual([expect.stringMatching(/engine-0 no longer answers.*suspect/), 'engine-0 is ready again']);
    stopping.abort();
    await watch;
  });

  it('fails the run when no engine is left', async () => {
    const watch = watchEngines(
      createFleet(() => ['failed', 'suspect']),
      options(20),
    );
    await expect(watch).rejects.toThrow(/No engine has answered/);
  });
});
