import { agentic, guiAgent } from './agentic';
import { ascend } from './ascend';
import type { Experiment } from './experiment';
import { oracle } from './oracle';
import { april, copris } from './partial-rollouts';
import { siblings, tailsieve } from './placements';
import { preemptions, rollpacker } from './rollpacker';
import { seer } from './seer';

/** All experiments of `headline`, which runs each once per seed. */
export const EXPERIMENTS: readonly Experiment[] = [
  oracle,
  ...rollpacker,
  preemptions,
  seer,
  ascend,
  april,
  copris,
  tailsieve,
  siblings,
  agentic,
  guiAgent,
];
