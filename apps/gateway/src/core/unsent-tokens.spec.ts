import { describe, expect, it } from 'vitest';
import { fetchState, selectZoo } from '../../../../lab/engine-simulator/src/test-engine';
import { expectSame, generate, useGateway } from '../../../../test/system/gateway-bench';
import { standsLong } from '../../../../test/system/stands-long';
import { ZOO_CUTS } from '../../../../test/system/zoo-cuts';
import type { GatewayConfig } from '../gateway.config';

const TOKENS = 500;
/** Tokens that an engine has made when its call is cut: it has not sent the last tokens of an event, all but one. */
const MADE = 320;
const FAST = 50;
const CUTS = ZOO_CUTS.filter(
  ({ ends, isUncut, dialects }) => ends !== 'nothing' && !isUncut && (dialects?.includes('sglang') ?? true),
);

describe.each<[number, Partial<GatewayConfig>, string[]]>([
  [64, {}, ['sglang-new']],
  [5, { streamInterval: 1 }, ['stream-interval']],
  [1, { streamInterval: 1 }, ['sglang-new']],
])('an engine with %i tokens in an event', (tokens, gateway, zoo) => {
  const system = useGateway(CUTS.length + 1, {
    tokens: TOKENS,
    speed: FAST,
    secondSpeed: FAST,
    registered: 'both',
    engine: { zoo },
    gateway,
  });
  const listEngines = () => [system.bench.engine, system.second];
  const select = async (standsAt?: number): Promise<void> => {
    for (const { url } of listEngines()) await selectZoo(url, { entries: zoo, standsAt });
  };

  /** Index of the engine on which the call stands still; later calls do not stand still. */
  async function findStanding(): Promise<number> {
    const find = async () => {
      const states = await Promise.all(listEngines().map(({ url }) => fetchState(url)));
      return states.findIndex(({ table }) => table.some(({ state, made }) => state === 'waiting' && made === MADE));
    };
    await expect.poll(find).toBeGreaterThanOrEqual(0);
    const index = await find();
    await select();
    return index;
  }

  it.each(CUTS)(
    'sends every token, though not all were sent before $name',
    async ({ cut, resume, restore, headers, ends }) => {
      const uncut = await system.uncut(TOKENS);
      await select(MADE);
      const replied = system.gateway.post('/generate', generate(TOKENS), headers);
      const serverId = ['s1', 's2'][await findStanding()];
      const context = { system, serverId, disconnect: () => undefined };
      await cut(context);
      await resume?.(context);
      const reply = await replied;
      if (ends === 'abort') {
        expect(reply.body.meta_info.finish_reason.type).toBe('abort');
        expect(reply.body.output_ids).toEqual(uncut.body.output_ids.slice(0, MADE));
      } else {
        expectSame(reply, uncut);
        const rows = (await Promise.all(listEngines().map(({ url }) => fetchState(url)))).flatMap(({ table }) => table);
        expect(rows.map(({ state, made }) => [state, made])).toContainEqual(['abort', MADE]);
      }
      expect(await system.metric('tokens_unsent_total')).toBeNaN();
      await restore?.(context);
    },
  );

  it('that dies costs less than one event, which is counted', async () => {
    const uncut = await system.uncut(TOKENS);
    await select(MADE);
    const replied = system.gateway.post('/generate', generate(TOKENS));
    const engine = listEngines()[await findStanding()]!;
    await standsLong(engine.url);
    await engine.close();
    expectSame(await replied, uncut);
    const lost = await system.metric('tokens_unsent_total');
    if (tokens === 1) expect(lost).toBeNaN();
    else expect(lost).toBe(tokens - 1);
  });
});
