import { readData, type Schemas } from '@broomwagon/admin-client';
import { Text } from '@mantine/core';
import { LiveData } from '../components/live-data';
import { compact, count } from '../components/format';
import { useLive } from '../live/use-live';
import { useSession } from '../session/session';
import { useScope } from '../shell/scope';

/** Statuses of replies about a name that is wrong, or that nothing has. */
const WRONG_NAME = new Set<number | undefined>([400, 404]);

interface StoppedWorkProps {
  /** The requests that the action stops. */
  of: { serverId?: string; job?: string; roundId?: string; groupId?: string };
  /** Effect on the requests, as a verb. */
  verb: 'stops' | 'interrupts' | 'moves';
}

/** Numbers of the requests and tokens that an action stops, read when the dialog of the action opens. */
export function StoppedWork({ of, verb }: StoppedWorkProps) {
  const { client } = useSession();
  const { pool } = useScope();
  const totals = useLive(`${pool}/totals/${JSON.stringify(of)}`, (signal) =>
    readData(client.GET('/api/v1/pools/{pool}/request-totals', { params: { path: { pool }, query: of }, signal })),
  );
  // A name that is being typed names nothing yet.
  if (totals.state === 'failed' && WRONG_NAME.has(totals.failure.error.status)) {
    return (
      <Text size="sm" role="status">
        {totals.failure.error.reason}
      </Text>
    );
  }
  return (
    <LiveData live={totals} what="the requests that this stops">
      {(value) => (
        <Text size="sm" fw={600} data-effect>
          {formatTotals(value, verb)}
        </Text>
      )}
    </LiveData>
  );
}

function formatTotals(
  { requests, tokens, withoutTokens, isPartial }: Schemas['RequestTotalsReply'],
  verb: string,
): string {
  const does = verb === 'moves' ? 'At the deadline this moves at most' : `This ${verb}`;
  if (requests === 0) return verb === 'moves' ? 'No request runs on it.' : `This ${verb} no request.`;
  const plural = requests === 1 ? 'request' : 'requests';
  const others = withoutTokens === 0 ? '' : `, not counting the tokens of ${count(withoutTokens)} calls without a job`;
  return `${does} ${isPartial ? 'more than ' : ''}${count(requests)} ${plural}, ${compact(tokens)} tokens${others}.`;
}
