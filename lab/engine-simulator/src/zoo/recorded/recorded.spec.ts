import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isBroomwagonError, type EngineDialect } from '@broomwagon/contracts';
import { createEngineAdapter, randomEngineRequestId } from '@broomwagon/engines';
import { TokenBuffer } from '@broomwagon/generation';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { selectZoo, startEngine } from '../../test-engine';
import { recordCommand } from './record.cli';
import { loadRecordings, type Recording } from './recording';

const STREAM = { lengths: { name: 'test', getLength: () => 12 }, streamMs: 0 };

/** Replays a recording, whole and cut at each event, and checks the text against the ids, and the end. */
async function checkRecording({ name, dialect, request, outcome, decoded }: Recording): Promise<void> {
  const engine = await startEngine(dialect, STREAM);
  await selectZoo(engine.url, { entries: [name] });
  const adapter = createEngineAdapter(dialect, engine.url, { model: 'simulated' });
  const stops = request.sampling?.stop ?? [];
  const read = async (cutAt: number) => {
    const buffer = new TokenBuffer(stops, false);
    const stop = new AbortController();
    let events = 0;
    const end = await adapter
      .generate(
        { ...request, engineRequestId: randomEngineRequestId() },
        {
          signal: stop.signal,
          readsAtOnce: () => true,
          onTokens: (increment) => {
            buffer.take(increment);
            events += 1;
            if (events >= cutAt) stop.abort();
          },
        },
      )
      .then(
        ({ finishReason }) => finishReason,
        (error: unknown) => (isBroomwagonError(error) ? error.code : Promise.reject(error as Error)),
      );
    if (end === 'stop' || end === 'length') buffer.complete();
    else buffer.cut();
    const { text, allIds, count } = buffer;
    if (decoded !== undefined && count > 0) {
      expect(allIds).toHaveLength(count);
      // The ids include a stop text that ended the response.
      if (stops.length > 0) expect(decoded[count]!.startsWith(text)).toBe(true);
      else expect(text.replace(/\uFFFD+$/, '')).toBe(decoded[count]!.replace(/\uFFFD+$/, ''));
    }
    return { end, events };
  };
  const { end, events } = await read(Infinity);
  expect(end).toBe(outcome);
  for (let cutAt = 1; cutAt < events; cutAt++) await read(cutAt);
  await engine.close();
}

// `it.each` needs at least one recording; without any, the tests below still read recordings of the simulator.
const committed = loadRecordings();
if (committed.length > 0) it.each(committed)('$name is read whole and cut at each event', checkRecording);

describe('npm run engines -- record', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'recordings-'));
    process.env.ENGINE_RECORDINGS = folder;
  });
  afterEach(() => {
    delete process.env.ENGINE_RECORDINGS;
    rmSync(folder, { recursive: true });
  });

  const record = async (dialect: EngineDialect, entries: string[]): Promise<Recording> => {
    const engine = await startEngine(dialect, STREAM);
    await selectZoo(engine.url, { entries, at: 5 });
    const row = ['--name', 'recorded-one', '--behaviour', 'sends tokens', '--release', 'simulator'];
    await recordCommand([engine.url, ...row]);
    await engine.close();
    expect(readdirSync(folder)).toEqual(['recorded-one.json']);
    return loadRecordings()[0]!;
  };

  it.each<[EngineDialect, string, Recording['outcome']]>([
    ['vllm', 'vllm-half-characters', 'stop'],
    ['vllm', 'error-event', 'ENGINE_ERROR'],
    ['sglang', 'sglang-whole', 'stop'],
    ['sglang', 'sglang-waiting-abort', 'aborted'],
    ['openai', 'crlf', 'stop'],
  ])('writes an entry for a stream of %s with %s', async (dialect, entry, outcome) => {
    const recording = await record(dialect, [entry]);
    expect(recording).toMatchObject({ name: 'recorded-one', dialect, outcome });
    if (dialect !== 'openai' && outcome !== 'ENGINE_ERROR') expect(recording.decoded!.length).toBeGreaterThan(4);
    await checkRecording(recording);
  });

  it('records decoded texts, with which a replay checks the stream', async () => {
    const recording = await record('vllm', ['sglang-new']);
    const decoded = recording.decoded!.map((text) => text.replace(' t', ' u'));
    await expect(checkRecording({ ...recording, decoded })).rejects.toThrow();
  });
});
