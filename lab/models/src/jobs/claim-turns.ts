/** What one request of a job of weight 1 adds to its service; a whole number, so that Lua and this count alike. */
const SERVICE_OF_ONE = 1_048_576;

/** How much of a pool a job may have. */
export interface Quota {
  /** Share under contention, against the weights of the others; 1 to 1,000. */
  weight: number;
  /** Requests that workers may have of it at once; absent = as many as there are. */
  maxInFlight?: number;
}

/** A job as the turns see it. */
export interface TurnJob {
  job: string;
  quota: Quota;
  /** Requests that may be claimed. */
  pending: number;
  /** Requests that workers have. */
  inFlight: number;
  /** Requests given so far, each by 1 / weight; as of its last turn. */
  service: number;
  /** Its place when it is in line: the service it had, or the present when it came back. Absent: it waits aside. */
  place?: number;
}

/** The jobs of a pool. */
export interface ClaimTurns {
  /** Place of the job that had the last turn: those who come back begin here, with no credit for the time away. */
  present: number;
  jobs: readonly TurnJob[];
}

/** Requests one job gives in its turn. */
export interface Turn {
  job: string;
  requests: number;
}

/**
 * Gives at most `max` requests: start-time fair queueing. The job with the least service has the turn and gives all it
 * can; so the shares of jobs with enough to do are those of their weights, within one claim. A job at its cap steps
 * aside, and blocks no other. libs/state/src/jobs/claim-turns.lua does the same.
 * @param only this job has all the turns, when it is in line; it pays for them, and the present stays where the line is
 */
export function takeTurns(turns: ClaimTurns, max: number, only?: string): { turns: ClaimTurns; given: Turn[] } {
  let { present } = turns;
  const jobs = new Map(turns.jobs.map((job) => [job.job, job]));
  const given: Turn[] = [];
  for (let left = max; left > 0;) {
    const first = nextOf([...jobs.values()]);
    if (first === undefined) break;
    present = first.place;
    const next = only === undefined ? first : nextOf([...jobs.values()].filter(({ job }) => job === only));
    if (next === undefined) break;
    const most = Math.min(left, roomOf(next), next.pending);
    const service = next.place + Math.floor((most * SERVICE_OF_ONE) / next.quota.weight);
    const pending = next.pending - most;
    // At its cap it had no turn; without requests it leaves the line after it.
    const hadTurn = roomOf(next) > 0;
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

/** A job has more requests, or workers have fewer of it: it is in line again when it has any to give. */
export function returnToLine(turns: ClaimTurns, changed: TurnJob): ClaimTurns {
  const place = changed.pending > 0 ? (changed.place ?? Math.max(turns.present, changed.service)) : changed.place;
  return { ...turns, jobs: turns.jobs.map((job) => (job.job === changed.job ? { ...changed, place } : job)) };
}

function roomOf({ quota, inFlight }: TurnJob): number {
  return quota.maxInFlight === undefined ? Infinity : Math.max(0, quota.maxInFlight - inFlight);
}

/** The least place; on ties the first by name. */
function nextOf(jobs: readonly TurnJob[]): (TurnJob & { place: number }) | undefined {
  const inLine = jobs.filter((job): job is TurnJob & { place: number } => job.place !== undefined);
  return inLine.sort((one, other) => one.place - other.place || (one.job < other.job ? -1 : 1))[0];
}
