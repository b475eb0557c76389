import type { GroupId, GroupStatus, JobId, ListGroupsReply, RoundId } from '@broomwagon/contracts';
import { isBroomwagonError } from '@broomwagon/contracts';
import { REMADE } from './make-again';
import type { Operations } from './operations';

/** A group that ended without training: `failed` or `dropped`, and why. */
export type LostGroup = Pick<GroupStatus, 'groupId' | 'state' | 'reason' | 'message' | 'requestId'>;

/** Groups of a job that ended without training, each reported once. */
export class LostGroups {
  private readonly found = new Map<GroupId, LostGroup>();

  /** @param onLost called with groups that were not reported before */
  constructor(
    private readonly operations: Operations,
    private readonly job: JobId,
    private readonly onLost: (groups: readonly LostGroup[]) => void = () => undefined,
  ) {}

  /**
   * Reads the groups that have ended without training since the round before was completed. Groups that this trainer
   * has dropped, because it submits them again, are not among them.
   * @param roundId absent: the last round
   */
  async read(roundId?: RoundId): Promise<LostGroup[]> {
    const groups: LostGroup[] = [];
    try {
      for (let cursor: number | undefined = 0; cursor !== undefined;) {
        const body = { job: this.job, roundId, set: 'lost' as const, cursor };
        const page: ListGroupsReply = await this.operations.call('group.list', body);
        groups.push(...page.groups.filter(({ reason }) => reason !== REMADE));
        ({ cursor } = page);
      }
    } catch (error) {
      // Services of an earlier version do not list groups that ended without training.
      if (!isBroomwagonError(error, 'VALIDATION_FAILED') || error.field !== 'set') throw error;
    }
    return groups;
  }

  /** Reads the groups that ended after the last step. */
  async readLast(): Promise<void> {
    try {
      this.report(await this.read());
    } catch (error) {
      if (!isBroomwagonError(error, 'JOB_NOT_FOUND') && !isBroomwagonError(error, 'ROUND_NOT_FOUND')) throw error;
    }
  }

  report(groups: readonly LostGroup[]): void {
    const fresh = groups.filter(({ groupId }) => !this.found.has(groupId));
    for (const group of fresh) this.found.set(group.groupId, group);
    if (fresh.length > 0) this.onLost(fresh);
  }

  /** Groups of these ids that were reported. */
  named(groupIds: readonly GroupId[]): LostGroup[] {
    return groupIds.flatMap((groupId) => this.found.get(groupId) ?? []);
  }
}
