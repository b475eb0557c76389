import { Injectable } from '@nestjs/common';
import {
  type JobId,
  type ListSnapshotsReply,
  type RestoreJobRequest,
  type SnapshotJobRequest,
  type SnapshotJobReply,
  type RestoreJobReply,
} from '@broomwagon/contracts';
import { transition, type NewEpoch } from '../library/function-runner';
import { createStoreClass } from '../library/store-of';

export interface SaveSnapshotPage extends SnapshotJobReply {
  /** An older snapshot must be deleted. */
  retired: boolean;
}

export interface RestoreSnapshotPage extends RestoreJobReply {
  /** A snapshot that was saved after this one must be deleted. */
  retired: boolean;
}

/**
 * Saves and restores the state of a job between two rounds, by tag. A page is one script; any replica may do the next
 * page.
 */
@Injectable()
export class SnapshotStore extends createStoreClass({
  /** Saves one page; call again while it is `saving`. */
  save: transition<SnapshotJobRequest, SaveSnapshotPage>('snapshots/save'),
  /** Does one page of a restore; call again while it is `restoring`. */
  restore: transition<RestoreJobRequest & NewEpoch, RestoreSnapshotPage>('snapshots/restore', { hasNewEpoch: true }),
  /** Deletes one page of snapshots that are no longer kept. */
  unlink: transition<object, { more: boolean }>('snapshots/unlink'),
  list: transition<{ job: JobId }, ListSnapshotsReply>('snapshots/list'),
}) {}
