import { Injectable } from '@nestjs/common';
import { transition } from '../library/function-runner';
import { storeOf } from '../library/store-of';

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
  /** References to remove now; listed again until `removed` names them. */
  due: string[];
  /** Payloads that wait, the unweighed too, and the bytes of those that are weighed. */
  awaiting: number;
  awaitingBytes: number;
}

/** The queue of payloads that transitions have freed. */
@Injectable()
export class RemovalStore extends storeOf({
  /** One page of what is to be done. What is due must not be named again. */
  look: transition<RemovalTerms, RemovalLook>('removals/look'),
  /** Notes the bytes of payloads that were unweighed; one without bytes is not there. */
  weighed: transition<{ payloads: { ref: string; bytes?: number }[] }, object>('removals/weighed'),
  /** Payloads that were due are gone from the payload store. */
  removed: transition<{ refs: string[] }, object>('removals/removed'),
}) {}
