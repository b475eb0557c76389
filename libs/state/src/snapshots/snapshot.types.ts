import type { SnapshotJobReply, RestoreJobReply } from '@broomwagon/contracts';

export interface SaveSnapshotPage extends SnapshotJobReply {
  /** An older snapshot is to be deleted. */
  retired: boolean;
}

export interface RestoreSnapshotPage extends RestoreJobReply {
  /** A snapshot that was made after this one is to be deleted. */
  retired: boolean;
}
