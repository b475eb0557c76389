import { Injectable } from '@nestjs/common';
import type { ConfigureJobReply, JobId, JobQuota } from '@broomwagon/contracts';
import { transition } from '../library/function-runner';
import { createStoreClass } from '../library/store-of';

/** `madeRoom`: parked claims may be granted. */
export type ConfigureJobAnswer = ConfigureJobReply & { madeRoom: boolean };

export interface PayloadRoomArgs {
  job: JobId;
  usedBytes: number;
  quotaBytes: number;
  /** Bytes reserved for each token that a sample may have. */
  bytesPerToken: number;
  /** The store has just refused tokens. */
  isRefused: boolean;
  /** Why the store takes no payloads at all; the bytes are then unknown and sent as 0. */
  fault?: string;
}
/** `changed`: this call changed `blocked`; `madeRoom`: parked claims may be granted. */
export interface PayloadRoomAnswer {
  blocked: boolean;
  changed: boolean;
  madeRoom: boolean;
}

@Injectable()
export class JobStore extends createStoreClass({
  /** Blocks the claims of a job while its payloads have no room, and unblocks them afterwards. */
  payloadRoom: transition<PayloadRoomArgs, PayloadRoomAnswer>('jobs/payload-room'),
  /** Sets the quota of a job; without a weight it only reads. @throws BroomwagonError VERSION_MISMATCH */
  configure: transition<{ job: JobId; ifVersion?: number } & Partial<JobQuota>, ConfigureJobAnswer>('jobs/configure'),
}) {}
