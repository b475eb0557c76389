import { connectRedis, PromptMemoryStore, promptHash, FunctionRunner } from '@broomwagon/state';
import { median, significant } from '../arithmetic';
import { Progress } from '../progress';
import { KEY_PREFIX, type Stage } from '../stage';
import { plainTable } from '../table';

const POOL = 'prompts';
const PAGE = 128;
const AT_ONCE = 4;
const SAMPLES = 8;

/** Content of the file of `--json`. */
export interface PromptsReport {
  measuredAt: string;
  prompts: number;
  /** Memory of Redis per prompt, keys included. */
  bytesPerPrompt: number;
  /** Microseconds per prompt: to add 8 lengths for a new prompt and for a known one, and to read the lengths. */
  rememberFirstMicroseconds: number;
  rememberAgainMicroseconds: number;
  readMicroseconds: number;
}

/** `bench prompts`: the memory of response lengths with a million prompts. */
export async function benchPrompts(stage: Stage, isQuick: boolean): Promise<{ report: PromptsReport; text: string }> {
  const prompts = isQuick ? 100_000 : 1_000_000;
  await stage.start((line) => console.log(line));
  const redis = connectRedis({ url: stage.services.redis.url, commandTimeoutMs: 60_000 });
  const memory = new PromptMemoryStore(new FunctionRunner(redis, KEY_PREFIX));
  const usedBytes = async (): Promise<number> => Number(/used_memory:(\d+)/.exec(await redis.info('memory'))![1]);
  const progress = new Progress(3);

  const lengths = Array.from({ length: SAMPLES }, (_, index) => 500 + 300 * index);
  const hashes = Array.from({ length: prompts }, (_, index) => promptHash(`prompt ${index}`));
  const remember = (page: readonly string[]) =>
    memory.remember(
      POOL,
      page.map((hash) => ({ hash, lengths, atCap: false })),
    );
  try {
    const before = await usedBytes();
    progress.step('remembering');
    const first = await perPrompt(hashes, remember);
    const bytes = (await usedBytes()) - before;
    const sample = hashes.slice(0, 100_000);
    progress.step('again');
    const again = await perPrompt(sample, remember);
    progress.step('reading');
    const read = await perPrompt(sample, (page) => memory.lengths(POOL, page));
    const report = {
      measuredAt: new Date().toISOString(),
      prompts,
      bytesPerPrompt: significant(bytes / prompts),
      rememberFirstMicroseconds: significant(first),
      rememberAgainMicroseconds: significant(again),
      readMicroseconds: significant(read),
    };
    return {
      report,
      text: plainTable(
        [`${prompts} prompts, ${SAMPLES} lengths each`, ''],
        [
          ['bytes of Redis a prompt', String(report.bytesPerPrompt)],
          ['remember, us a prompt', String(report.rememberFirstMicroseconds)],
          ['remember again, us a prompt', String(report.rememberAgainMicroseconds)],
          ['read, us a prompt', String(report.readMicroseconds)],
        ],
      ),
    };
  } finally {
    progress.end();
    await redis.quit();
  }
}

/** Median over batches of the time per prompt, microseconds; a batch is a few pages sent at once. */
async function perPrompt(hashes: readonly string[], work: (page: readonly string[]) => Promise<unknown>) {
  const times: number[] = [];
  for (let start = 0; start < hashes.length; start += PAGE * AT_ONCE) {
    const pages = Array.from({ length: AT_ONCE }, (_, index) =>
      hashes.slice(start + index * PAGE, start + (index + 1) * PAGE),
    ).filter(({ length }) => length > 0);
    const startedAt = performance.now();
    await Promise.all(pages.map((page) => work(page)));
    times.push(((performance.now() - startedAt) * 1_000) / pages.reduce((sum, { length }) => sum + length, 0));
  }
  return median(times);
}
