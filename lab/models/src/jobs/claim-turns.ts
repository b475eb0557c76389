/** Service that one request of a job of weight 1 adds; a whole number, so that Lua and this model count alike. */
const SERVICE_OF_ONE = 1_048_576;

/** Share and cap of a job in its pool. */
export interface Quota {
  /** Share under contention, relative to the weights of the other jobs; 1 to 1,000. */
  weight: number;
  /** Requests of the job that workers may have at once; absent = no cap. */
  maxInFlight?: number;
}

/** State of a job in the order of turns. */
export interface TurnJob {
  job: string;
  quota: Quota;
  /** Requests that may be claimed. */
  pending: number;
  /** Requests that workers have. */
  inFlight: number;
  /** Service so far, as of the last turn: each given request counts 1 / weight. */
  service: number;
  /** Place in line: the job's service, or the present when the job returned. Absent: the job is not in line. */
  place?: number;
}

/** The jobs of a pool. */
export interface ClaimTurns {
  /** Place of the job that had the last turn: returning jobs start here, without credit for the time away. */
  present: number;
  jobs: readonly TurnJob[];
}

/** Requests that one job gives in its turn. */
export interface Turn {
  job: string;
  requests: number;
}

/**
 * Gives at most `max` requests by start-time fair queueing. The job with the least service has the turn and gives as
 * many requests as it can; so jobs with enough requests share by their weights, within one claim. A job at its cap
 * leaves the line and does not block others. libs/state/src/jobs/claim-turns.lua does the same.
 * @param only job that has all the turns if it is in line; the turns count as its service, and the present stays the
 *   place of the first job in line
 */
export function takeTurns(turns: ClaimTurns, max: number, only?: string): { turns: ClaimTurns; given: Turn[] } {
  let { present } = turns;
  const jobs = new Map(turns.jobs.map((job) => [job.job, job]));
  const given: Turn[] = [];
  for (let left = max; left > 0;) {
    const first = findNext([...jobs.values()]);
    if (first === undefined) break;
    present = first.place;
    const next = only === undefined ? first : findNext([...jobs.values()].filter(({ job }) => job === only));
    if (next === undefined) break;
    const most = Math.min(left, computeRoom(next), next.pending);
    const service = next.place + Math.floor((most * SERVICE_OF_ONE) / next.quota.weight);
    const pending = next.pending - most;
    // A job at its cap has no turn and leaves the line; a job without further requests leaves it after its turn.
    const hadTurn = computeRoom(next) > 0;
    jobs.set(next.job, {
      ...next,
      pending,
      inFlight: next.inFlight + most,
      service: hadTurn ? service : next.service,
      place: hadTurn && pending > 0 ? service : undefined,
    });
    if (most > 0) given.push({ job: next.job, requests: most });
    left -= most;
  }
  return { turns: { present, jobs: [...jobs.values()] }, given };
}

/** Puts a job back in line if it has pending requests, after these have grown or workers have fewer of its requests. */
export function returnToLine(turns: ClaimTurns, changed: TurnJob): ClaimTurns {
  const place = changed.pending > 0 ? (changed.place ?? Math.max(turns.present, changed.service)) : changed.place;
  return { ...turns, jobs: turns.jobs.map((job) => (job.job === changed.job ? { ...changed, place } : job)) };
}

function computeRoom({ quota, inFlight }: TurnJob): number {
  return quota.maxInFlight === undefined ? Infinity : Math.max(0, quota.maxInFlight - inFlight);
}

/** The job with the least place; the first by name on ties. */
function findNext(jobs: readonly TurnJob[]): (TurnJob & { place: number }) | undefined {
  const inLine = jobs.filter((job): job is TurnJob & { place: number } => job.place !== undefined);
  return inLine.sort((one, other) => one.place - other.place || (one.job < other.job ? -1 : 1))[0];
}
