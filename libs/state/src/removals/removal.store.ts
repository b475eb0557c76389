import { Injectable } from '@nestjs/common';
import type { PoolName } from '@broomwagon/contracts';
import { transition, FunctionRunner } from '../library/function-runner';

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
  /** Payloads that wait, the unweighed too, and the bytes of those that are weighed. */
  awaiting: number;
  awaitingBytes: number;
}

const look = transition<RemovalTerms, RemovalLook>('removals/look');
const weighed = transition<{ payloads: { ref: string; bytes?: number }[] }, object>('removals/weighed');
const removed = transition<{ refs: string[] }, object>('removals/removed');

/** The queue of payloads that transitions have freed. Throws BroomwagonError UNAVAILABLE. */
@Injectable()
export class RemovalStore {
  constructor(private readonly scripts: FunctionRunner) {}

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
