import { DEFAULT_MAX_FAILURES } from '../../libs/policies/src/tail/round-rules';
import { ZOO } from '../../lab/engine-simulator/src/zoo/zoo';
import { type CallFault, type Disturbance, type Schedule, SERVERS } from './schedule';

/** Kind of failure that a disturbance of one engine causes (decision 0143). */
type Evidence = 'nothing' | 'refused' | 'wrong' | 'failed';

const OF_CALLS: Record<CallFault, Evidence> = {
  'error-429': 'nothing',
  'error-500': 'failed',
  'error-400': 'refused',
  html: 'wrong',
  hang: 'failed',
  close: 'failed',
  'close-mid-stream': 'failed',
  'end-mid-stream': 'failed',
  'done-mid-stream': 'failed',
  stall: 'failed',
  'stall-unnoticed': 'failed',
  'error-in-stream': 'failed',
  'long-line': 'wrong',
  late: 'failed',
  'abort-500': 'nothing',
};

/**
 * Maximum number of groups that the engines of a schedule can fail for good. A request fails for good only by evidence
 * about the request: an engine refuses the request, each engine sends an answer of another dialect, or more than
 * `maxFailures` starts of servers fail the request. Engines that are busy, slow, dead or away explain no failed group.
 */
export function maxFailedGroups({ disturbances, policy }: Schedule): number {
  const all = disturbances.map(({ what }) => what);
  let refused = 0;
  let failingStarts = 0;
  let hasWrong = false;
  let answering: number = SERVERS;
  for (let server = 0; server < SERVERS; server++) {
    const own = all.filter((what) => what.kind !== 'weights' && (what.kind === 'storm' || what.server === server));
    const evidence = new Set(own.flatMap(getEvidence));
    for (const what of own) if (what.kind === 'calls' && OF_CALLS[what.fault] === 'refused') refused += what.count;
    // An engine that dies breaks the connections of its calls. The start after its last death fails only by a fault.
    const deaths = own.filter(({ kind }) => kind === 'death').length;
    failingStarts += deaths + (evidence.has('failed') || evidence.has('wrong') ? 1 : 0);
    hasWrong ||= evidence.has('wrong');
    if (evidence.has('wrong') || own.some(({ kind }) => kind === 'death' || kind === 'unhealthy')) answering -= 1;
  }
  const mayFailAll = failingStarts > (policy.maxFailures ?? DEFAULT_MAX_FAILURES) || (hasWrong && answering === 0);
  return mayFailAll ? Infinity : refused;
}

function getEvidence(what: Disturbance): Evidence[] {
  if (what.kind === 'calls') return [OF_CALLS[what.fault]];
  if (what.kind === 'storm') return [what.status === 500 ? 'failed' : 'nothing'];
  if (what.kind !== 'zoo') return [];
  return what.entries.map((entry) => {
    const failure = ZOO.find(({ name }) => name === entry)?.failure;
    if (failure === undefined || failure === 'ENGINE_BUSY') return 'nothing';
    return failure === 'ENGINE_PROTOCOL' ? 'wrong' : 'failed';
  });
}
