export {
  toDecision,
  toLeaseGrant,
  buildLeaseId,
  parseLeaseId,
  toRefusal,
  type ServerTable,
  type WaiterAnswers,
} from './grants';
export { type AcquireEntry, type AcquireResult, LeaseStore, type ReleaseEntry } from './lease.store';
