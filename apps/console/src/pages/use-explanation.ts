import { readData, type Schemas } from '@broomwagon/admin-client';
import { useSession } from '../session/session';
import { useJob } from '../shell/scope';
import { type Live, useLive } from '../live/use-live';

export type Explanation = Schemas['ExplainRoundReply'];

/** Interval at which the explanation is read again, milliseconds. */
const EVERY_MS = 5_000;

/**
 * What an open round waits for.
 * @param roundId undefined: nothing is read
 */
export function useExplanation(roundId: string | undefined): Live<Explanation> {
  const { client } = useSession();
  const path = useJob();
  return useLive(
    roundId && `${path.pool}/${path.job}/${roundId}/explanation`,
    (signal) => {
      const params = { path: { ...path, roundId: roundId! } };
      return readData(client.GET('/api/v1/pools/{pool}/jobs/{job}/rounds/{roundId}/explanation', { params, signal }));
    },
    { everyMs: EVERY_MS, after: ['round.completed', 'round.cancelled'] },
  );
}
