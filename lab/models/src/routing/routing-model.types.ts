import type { Decision, EngineFeature, Epoch, UnservedReason } from '@broomwagon/contracts';
import type { ModelAcquire } from './waiting-lanes';

/** A server of the model. */
export interface ModelServer extends ModelRegistration {
  epoch: Epoch;
  chosen: number;
  turn: number;
}
export interface ModelLease {
  seq: number;
  serverId: string;
  serverEpoch: Epoch;
  acquire: ModelAcquire;
  /** Receipt of the choice, with the server that was chosen. */
  receipt: ModelReceipt & { serverId: string };
}
export type ModelReceipt = Pick<Decision, 'policy' | 'policyVersion' | 'key' | 'best' | 'eligible'>;
export interface ModelBinding {
  serverId: string;
  epoch: Epoch;
  /** All leases of the session, also from before it was bound to its present server. */
  leases: number;
  finished: boolean;
  dpRank?: number;
}
/** A transfer; see `lb.transfer`. */
export interface ModelTransfer {
  transferId: string;
  acquireId: string;
  seq?: number;
  workerId: string;
  workerEpoch: Epoch;
  targetServerId: string;
  targetEpoch?: Epoch;
}
export type ModelAnswer =
  | ({ seq: number; serverId: string; dpRank?: number } & Decision)
  | { error: string; reason?: UnservedReason }
  | { parked: true };
/** Answer to a parked acquire. */
export type ModelWaiterAnswer = { acquireId: string } & Exclude<ModelAnswer, { parked: true }>;
export interface ModelRegistration {
  serverId: string;
  instanceId?: string;
  maxInflight: number;
  weight: number;
  weightVersion: number;
  labels?: Record<string, string>;
  lacks?: EngineFeature[];
  models?: readonly string[];
}
