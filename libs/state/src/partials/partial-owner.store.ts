import { Injectable } from '@nestjs/common';
import type { Epoch, WorkerId } from '@broomwagon/contracts';
import { transition } from '../library/function-runner';
import { storeOf } from '../library/store-of';

interface Claimed {
  /** Of the request, by `hashOfIdentity`. */
  identity: string;
  /** Id that no other generation has. */
  generation: string;
}
/** Which generation of a request is the only one, in which replica. */
export interface PartialClaim extends Claimed {
  workerId: WorkerId;
  workerEpoch: Epoch;
  /** Of the body: a request with another one is no repeat. */
  digest: string;
  /** No client reads it: another replica may take the request over. */
  isUnread?: boolean;
  /** Another generation has held the request: if that has ended, the request is not claimed. */
  isWaiting?: boolean;
  expiresMs: number;
}
export interface PartialClaimReply {
  state: 'claimed' | 'held' | 'other' | 'ended';
  /** With `claimed`: generation in whose place it is. */
  from?: string;
  /** With `claimed`: saved tokens. */
  saved?: unknown;
}

/** One generation for each request with an id of its client, in all replicas of the gateway. */
@Injectable()
export class PartialOwnerStore extends storeOf({
  claim: transition<PartialClaim, PartialClaimReply>('partials/claim'),
  release: transition<Claimed & { keepsSaved: boolean }, object>('partials/release'),
}) {}
