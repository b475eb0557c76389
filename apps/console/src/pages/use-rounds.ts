import { readData, type Schemas } from '@broomwagon/admin-client';
import { useSession } from '../session/session';
import { useJob } from '../shell/scope';
import { type Live, useLive } from '../live/use-live';

export type Round = Schemas['RoundSummary'];

/** Whether a round still waits for groups. */
export function isOpen({ state }: Pick<Round, 'state'>): boolean {
  return state === 'opening' || state === 'open';
}

export function useRounds(): Live<readonly Round[]> {
  const { client } = useSession();
  const path = useJob();
  return useLive(
    `${path.pool}/${path.job}/rounds`,
    async (signal) =>
      (await readData(client.GET('/api/v1/pools/{pool}/jobs/{job}/rounds', { params: { path }, signal }))).rounds,
    { everyMs: 10_000, after: ['round.opened', 'round.completed', 'round.closed', 'round.cancelled'] },
  );
}
