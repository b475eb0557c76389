import { randomUUID } from 'node:crypto';
import type { Claim, CompleteReply, Epoch, FailReply, Segment } from '@broomwagon/contracts';
import type { TestSystem } from './test-system';

/** A worker played by the test: it speaks the protocol and makes tokens up. */
export class TestWorker {
  private constructor(
    private readonly system: TestSystem,
    readonly workerId: string,
    readonly workerEpoch: Epoch,
  ) {}

  static async register(system: TestSystem, workerId: string): Promise<TestWorker> {
    const body = { workerId, registrationId: randomUUID(), ttlMs: 3_600_000 };
    return new TestWorker(system, workerId, (await system.call('worker.register', body)).workerEpoch);
  }

  get identity() {
    return { workerId: this.workerId, workerEpoch: this.workerEpoch };
  }

  async claim(max: number): Promise<Claim[]> {
    return (await this.system.call('request.claim', { claimId: randomUUID(), max, ...this.identity })).claims;
  }

  /** Reports that the attempt runs. */
  async begin(claim: Claim): Promise<void> {
    await this.system.call('request.save', this.fence(claim));
  }

  /** Takes a lease for the attempt and gives it back. */
  async useServer({ requestId, attempt }: Claim): Promise<void> {
    const acquireId = randomUUID();
    const sessionId = `${requestId}/${attempt}`;
    const { leaseId } = await this.system.call('lb.acquire', { acquireId, requestId, sessionId, ...this.identity });
    await this.system.call('lb.release', { leaseId, outcome: 'finished' });
    await this.system.call('lb.finish-session', { sessionId });
  }

  /** Stores these bytes as the tokens of the attempt. */
  async store(claim: Claim, bytes: Buffer): Promise<Segment> {
    const ref = await this.system.putPayload(claim.job, claim.requestId, String(claim.attempt), bytes);
    const { attempt, weightVersion } = claim;
    return { attempt, weightVersion, serverId: 's1', serverEpoch: 'e1', tokenCount: 3, ref };
  }

  complete(claim: Claim, segment: Segment): Promise<CompleteReply> {
    return this.system.call('request.complete', { ...this.fence(claim), finishReason: 'stop', segment });
  }

  /** Confirms an abort. */
  confirm(claim: Claim, segment: Segment): Promise<FailReply> {
    return this.system.call('request.fail', { ...this.fence(claim), reason: 'aborted', retryable: true, segment });
  }

  private fence({ requestId, attempt }: Claim) {
    return { requestId, attempt, ...this.identity };
  }
}
