import type { PoolName } from '@broomwagon/contracts';
import { script, type ScriptRunner } from '../scripts/script-runner';

/** When payloads that nothing names any more are removed. */
export interface RemovalTerms {
  /** How long they wait, milliseconds. */
  deleteAfterMs: number;
  /** What Redis may lose at most, milliseconds: no payload waits for less. */
  lossWindowMs: number;
  /** Bytes that may wait in a pool; above it the oldest wait for less. */
  maxBytes: number;
}
/** What waits for its removal in a pool. */
export interface RemovalLook {
  /** References whose bytes are not known yet. */
  unweighed: string[];
  /** References to remove now; again each time until they are said to be removed. */
  due: string[];
  /** Payloads that wait, and their bytes. */
  awaiting: number;
  awaitingBytes: number;
}

const look = script<RemovalTerms, RemovalLook>('removals/look');
const weighed = script<{ payloads: { ref: string; bytes?: number }[] }, object>('removals/weighed');
const removed = script<{ refs: string[] }, object>('removals/removed');

/** The queue of payloads that transitions have freed. Throws BroomwagonError UNAVAILABLE. */
export class RemovalStore {
  constructor(private readonly scripts: ScriptRunner) {}

  /** One page of what is to be done. What it calls due may be named by nothing any more. */
  look(pool: PoolName, terms: RemovalTerms): Promise<RemovalLook> {
    return this.scripts.run(look, pool, terms);
  }

  /** Notes the bytes of payloads that were unweighed; one without bytes is not there. */
  async weighed(pool: PoolName, payloads: { ref: string; bytes?: number }[]): Promise<void> {
    await this.scripts.run(weighed, pool, { payloads });
  }

  /** Payloads that were due are gone from the payload store. */
  async removed(pool: PoolName, refs: string[]): Promise<void> {
    await this.scripts.run(removed, pool, { refs });
  }
}
