import { describe, expect, it } from 'vitest';
import { OPERATIONS, buildPattern, type OperationName } from '@broomwagon/contracts';
import { assertHandlersComplete } from './handlers-complete';

const owned = (Object.keys(OPERATIONS) as OperationName[])
  .filter((name) => OPERATIONS[name].owner === 'load-balancer')
  .map((name) => buildPattern(name) as string);

describe('assertHandlersComplete', () => {
  it('is content with exactly the operations of the app, and other subjects beside them', () => {
    assertHandlersComplete('load-balancer', [...owned, 'rollout.v1.*.worker.{workerId}.abort']);
    assertHandlersComplete('worker', []);
  });

  it('names the missing and the foreign at once', () => {
    const wrong = [...owned.slice(1), buildPattern('round.open')];
    const attempt = (): void => assertHandlersComplete('load-balancer', wrong);
    expect(attempt).toThrow(`${owned[0]} has no handler`);
    expect(attempt).toThrow(`${buildPattern('round.open')} belongs to trainer-coordinator`);
  });
});
