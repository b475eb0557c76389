import { Injectable } from '@nestjs/common';
import type { Epoch, WorkerId } from '@broomwagon/contracts';
import { transition } from '../library/function-runner';
import { createStoreClass } from '../library/store-of';

interface Claimed {
  /** Identity of the request, hashed with `hashOfIdentity`. */
  identity: string;
  generation: string;
}
/** Claim of a request for one generation in one replica, so that no second generation runs at the same time. */
export interface PartialClaim extends Claimed {
  workerId: WorkerId;
  workerEpoch: Epoch;
  /** Digest of the body. A request with another digest is no repeat. */
  digest: string;
  /** No client reads the response, so another replica may take the request over. */
  isUnread?: boolean;
  /** The caller has waited for another generation, which held the request. If it has ended, nothing is claimed. */
  isWaiting?: boolean;
  expiresMs: number;
}
export interface PartialClaimReply {
  state: 'claimed' | 'held' | 'other' | 'ended';
  /** With `claimed`: id of the generation from which the request was taken over. */
  from?: string;
  /** With `claimed`: saved tokens. */
  saved?: unknown;
  /** Additions of later saves to `saved`, in order. */
  pieces?: unknown[];
}

/** Keeps, for each request with an id from its client, one generation at a time in all replicas of the gateway. */
@Injectable()
export class PartialOwnerStore extends createStoreClass({
  claim: transition<PartialClaim, PartialClaimReply>('partials/claim'),
  release: transition<Claimed & { keepsSaved: boolean }, object>('partials/release'),
}) {}
