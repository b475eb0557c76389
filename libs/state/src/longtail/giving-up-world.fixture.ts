import { isBroomwagonError } from '@broomwagon/contracts';
import { expect } from 'vitest';
import { JOB, longtail, rounds, World } from '../rounds/data-set-world.fixture';
import { buildSegment } from '../rounds/world-attempt.fixture';

/** A world whose workers hand samples in unfinished, and whose trainer gives rounds up. */
export class GivingUpWorld extends World {
  cancels = 0;
  requeues = 0;

  protected override nameRound(step: number): string {
    return `r${step}-${this.cancels}`;
  }

  /** A round that lost a group asks for a replacement. This trainer has none, so it cancels the round. */
  override async train(): Promise<boolean> {
    if (this.plan !== undefined && this.toSubmit.length === 0) {
      const { state, shortfallGroups } = await rounds.status(this.pool, { job: JOB });
      if (state === 'open' && shortfallGroups > 0) {
        await this.cancel('requeue');
        return true;
      }
    }
    return super.train();
  }

  async handIn(): Promise<void> {
    const attempt = this.pick(this.held);
    if (attempt === undefined) return;
    this.forget(attempt);
    const without = this.decide(3) === 0;
    if (!without) attempt.tokens += this.decide(3);
    const args = { ...attempt.fence, ...(without ? { tokens: 0 } : buildSegment(attempt)) };
    const answer = await this.send(() => longtail.requeue(this.pool, args));
    if (isBroomwagonError(answer)) return;
    this.requeues += 1;
    if (!without) this.acknowledge(attempt);
    await this.confirm(answer.aborts);
  }

  async cancel(mode: 'requeue' | 'drop'): Promise<void> {
    if (this.plan === undefined) return;
    const args = { job: JOB, roundId: this.roundId, trainerEpoch: this.epoch!, mode, reason: 'test' };
    const answer = await this.send(() => rounds.cancel(this.pool, args));
    expect(answer).toMatchObject({ state: 'cancelled', mode });
    this.cancels += 1;
    this.toSubmit = [];
    this.plan = undefined;
  }
}
