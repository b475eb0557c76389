import type { Schemas } from '@broomwagon/admin-client';
import { compact, count } from '../../components/format';
import { Stat, Stats } from '../../components/stat';

export function RoundStats({ round }: { round: Schemas['RoundStatus'] }) {
  const returned = Object.values(round.returnedAttempts).reduce<number>((sum, one) => sum + (one ?? 0), 0);
  const lost = round.failedGroups + round.droppedGroups;
  return (
    <Stats>
      <Stat
        label="Groups launched"
        value={count(round.roundGroups)}
        detail={`${count(round.takenGroups)} from the queue`}
      />
      <Stat label="Samples done" value={count(round.requestsDone)} />
      <Stat label="Requests cut" value={count(round.requestsCut)} />
      <Stat label="Groups queued for later" value={count(round.groupsRequeued)} />
      <Stat label="Groups finished, no place" value={count(round.heldGroups)} />
      <Stat label="Groups lost" value={count(lost)} detail={lost > 0 ? 'failed or dropped' : undefined} />
      <Stat label="Attempts returned" value={count(returned)} />
      <Stat label="Tokens thrown away" value={compact(round.wastedTokens)} />
      <Stat label="Weight version" value={round.weightVersion} />
    </Stats>
  );
}
