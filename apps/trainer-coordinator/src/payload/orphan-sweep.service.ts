import { Injectable } from '@nestjs/common';
import { Alarms, Periodically } from '@broomwagon/platform';
import { PayloadStore, PoolDirectory, RoundStore } from '@broomwagon/state';
import { CoordinatorConfig } from '../coordinator.config';

const SWEEP_INTERVAL_MS = 60_000;
const OVERRIDE = 'PAYLOAD_SWEEP_UNCHECKED=true sweeps all the same';
const MESSAGES = {
  'payload-sweep-no-pools': `Redis has no pool, but there are payloads: none is removed. Restore Redis; ${OVERRIDE}`,
  'payload-sweep-shared':
    'Another deployment uses the payload store, or used it before Redis was lost: no payload is removed. ' +
    `Give each deployment its own PAYLOAD_DIR or REDIS_KEY_PREFIX; ${OVERRIDE}`,
  'payload-sweep-too-many':
    'More than a tenth of all payloads have no owner: none is removed. ' +
    `Check that Redis has all its pools and jobs; ${OVERRIDE}`,
};

/**
 * Removes payloads without an owner. Removes nothing when Redis may not know all owners: Redis is empty, too many
 * payloads have no owner, or another deployment uses the same store. All replicas may sweep at once.
 */
@Injectable()
export class OrphanSweepService {
  constructor(
    private readonly directory: PoolDirectory,
    private readonly rounds: RoundStore,
    private readonly payloads: PayloadStore,
    private readonly alarms: Alarms,
    private readonly config: CoordinatorConfig,
  ) {}

  /** One pass over the store. @throws BroomwagonError UNAVAILABLE */
  @Periodically('orphans', SWEEP_INTERVAL_MS)
  async sweep(): Promise<void> {
    const isUnchecked = this.config.payloadSweepUnchecked;
    if (!isUnchecked && (await this.directory.list()).length === 0) {
      const payloads = await this.payloads.countAll();
      return this.show(payloads > 0 ? 'payload-sweep-no-pools' : undefined, { payloads });
    }
    const deployment = await this.directory.deployment();
    if (deployment === undefined) return;
    if (isUnchecked) await this.payloads.adopt(deployment);
    const others = await this.payloads.usedBy(deployment);
    if (others.length > 0) return this.show('payload-sweep-shared', { deployment, others });
    const sweep = await this.payloads.sweepOrphans(
      this.config.payloadOrphanAfterMs,
      async ({ pool, job, owner }, ref) => (await this.rounds.owns(pool, { job, owner, ref })).owned,
      { isUnbounded: isUnchecked },
    );
    this.show(sweep.isRefused ? 'payload-sweep-too-many' : undefined, sweep);
  }

  private show(alarm: keyof typeof MESSAGES | undefined, about: object): void {
    this.alarms.look('*', 'orphans', alarm, alarm === undefined ? '' : MESSAGES[alarm], about);
  }
}
