import type { CheckpointJobReply, Epoch, JobId, RestoreJobReply } from '@broomwagon/contracts';

export interface SaveCheckpointArgs {
  job: JobId;
  trainerEpoch: Epoch;
  stamp?: string;
  tag: string;
}
export interface SaveCheckpointPage extends CheckpointJobReply {
  /** An older checkpoint is to be deleted. */
  retired: boolean;
}

export interface RestoreCheckpointArgs {
  job: JobId;
  trainerEpoch?: Epoch;
  stamp?: string;
  tag: string;
}
export interface RestoreCheckpointPage extends RestoreJobReply {
  /** A checkpoint that was made after this one is to be deleted. */
  retired: boolean;
}

export interface UnlinkCheckpointsPage {
  more: boolean;
}
