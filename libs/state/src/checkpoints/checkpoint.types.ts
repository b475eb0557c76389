import type { CheckpointJobReply, RestoreJobReply } from '@broomwagon/contracts';

export interface SaveCheckpointPage extends CheckpointJobReply {
  /** An older checkpoint is to be deleted. */
  retired: boolean;
}

export interface RestoreCheckpointPage extends RestoreJobReply {
  /** A checkpoint that was made after this one is to be deleted. */
  retired: boolean;
}
