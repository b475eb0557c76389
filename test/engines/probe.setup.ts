import type { EngineDialect } from '@broomwagon/contracts';
import type { EngineDescription } from '@broomwagon/engines';
import type { TestProject } from 'vitest/node';
import { detectEngine } from '../../libs/engines/src/detect-engine';

declare module 'vitest' {
  interface ProvidedContext {
    engine: EngineDescription & { dialect: EngineDialect };
  }
}

/** Detects dialect and capabilities of the engine, so that tests of absent capabilities are skipped. */
export default async function probe(project: TestProject): Promise<void> {
  const options = { model: process.env.REAL_ENGINE_MODEL, apiKey: process.env.ENGINE_API_KEY };
  const { adapter, ...description } = await detectEngine(process.env.REAL_ENGINE_URL!, options);
  const engine = { dialect: adapter.dialect, ...description };
  console.log(JSON.stringify(engine, null, 2));
  project.provide('engine', engine);
}
