import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { EngineDialect, ErrorCode } from '@broomwagon/contracts';
import type { GenerationRequest, GenerationResult } from '@broomwagon/engines';
import { PROJECT_ROOT } from '@broomwagon/platform';
import type { ZooEntry, ZooRow } from '../zoo-entry';

const TEST = 'lab/engine-simulator/src/zoo/recorded/recorded.spec.ts';

/** A recorded stream of a real engine. */
export interface Recording extends Pick<ZooRow, 'name' | 'behaviour' | 'release' | 'source'> {
  dialect: EngineDialect;
  /** Request of Broomwagon. */
  request: Omit<GenerationRequest, 'engineRequestId' | 'made'>;
  response: { status: number; contentType: string; body: string };
  /** Finish reason or error with which Broomwagon read the whole stream. */
  outcome: GenerationResult['finishReason'] | ErrorCode;
  /** Texts of the first n token ids as decoded by the engine, for each n; absent if the engine cannot decode. */
  decoded?: string[];
}

/** Folder of the recordings, one JSON file each. */
export function recordingsFolder(): string {
  return process.env.ENGINE_RECORDINGS ?? join(PROJECT_ROOT, 'lab/engine-simulator/recordings');
}

export function loadRecordings(folder = recordingsFolder()): Recording[] {
  const files = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.json')) : [];
  return files.toSorted().map((file) => JSON.parse(readFileSync(join(folder, file), 'utf8')) as Recording);
}

/** Entries that answer each generate call with their recording. */
export function recordedEntries(): ZooEntry[] {
  return loadRecordings().map(({ name, behaviour, release, source, dialect, response: recorded }) => ({
    name,
    behaviour,
    release,
    source,
    dialects: [dialect],
    broomwagon: 'reads the stream, whole and cut at each event',
    test: TEST,
    answer: (response) => {
      response.writeHead(recorded.status, { 'content-type': recorded.contentType }).end(recorded.body);
    },
  }));
}
