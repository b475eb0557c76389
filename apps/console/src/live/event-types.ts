import type { Schemas } from '@broomwagon/admin-client';

export type PoolEvent = Schemas['PoolEvent'];
export type PoolEventType = PoolEvent['type'];

/** All types of events, in the order of a round. `often`: each sample, group or server of a round has such an event. */
const FREQUENCY: Record<PoolEventType, 'often' | 'seldom'> = {
  'round.opened': 'seldom',
  'round.submitted': 'often',
  'attempt.ended': 'often',
  'request.finished': 'often',
  'round.progressed': 'often',
  'round.completed': 'seldom',
  'longtail.requeued': 'often',
  'round.settled': 'seldom',
  'round.closed': 'seldom',
  'round.cancelled': 'seldom',
  'request.aborted': 'often',
  'request.lost': 'seldom',
  'group.failed': 'seldom',
  'group.dropped': 'often',
  'job.taken-over': 'seldom',
  'job.reconciled': 'seldom',
  'job.snapshotted': 'seldom',
  'job.restored': 'seldom',
  'weights.begun': 'seldom',
  'weights.committed': 'seldom',
  'weights.rolled-back': 'seldom',
  'server.paused': 'often',
  'server.resumed': 'often',
  'server.fenced': 'seldom',
  'server.hung': 'seldom',
  'pool.set-back': 'seldom',
};
export const EVENT_TYPES = Object.keys(FREQUENCY) as PoolEventType[];
/** Types that are always read. A page that shows other types requests them. */
export const SELDOM_EVENTS = EVENT_TYPES.filter((type) => FREQUENCY[type] === 'seldom');
