import { Injectable } from '@nestjs/common';
import { transition } from '../library/function-runner';
import { createStoreClass } from '../library/store-of';

/** Terms for the removal of payloads to which nothing refers any more. */
export interface RemovalTerms {
  /** Time that payloads wait for their removal, milliseconds. */
  deleteAfterMs: number;
  /** Maximum time of writes that Redis may lose, milliseconds. No payload waits for a shorter time. */
  lossWindowMs: number;
  /** Maximum bytes that wait in a pool. Above it, the oldest payloads are removed sooner than `deleteAfterMs`. */
  maxBytes: number;
}
/** Payloads of a pool that wait for their removal. */
export interface RemovalLook {
  /** References whose bytes are not known yet. */
  unweighed: string[];
  /** References of payloads to remove now; listed again until `removed` names them. */
  due: string[];
  /** Number of waiting payloads, unweighed ones included. `awaitingBytes` are the bytes of the weighed ones. */
  awaiting: number;
  awaitingBytes: number;
}

/** The queue of payloads that transitions have freed. */
@Injectable()
export class RemovalStore extends createStoreClass({
  /** One page of payloads to weigh and to remove. Nothing may refer to a payload that is due. */
  look: transition<RemovalTerms, RemovalLook>('removals/look'),
  /** Notes the bytes of unweighed payloads. A payload without bytes is missing in the payload store. */
  weighed: transition<{ payloads: { ref: string; bytes?: number }[] }, object>('removals/weighed'),
  /** Notes that due payloads were removed from the payload store. */
  removed: transition<{ refs: string[] }, object>('removals/removed'),
}) {}
