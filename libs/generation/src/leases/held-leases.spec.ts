import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { HeldLeases } from './held-leases';
import { LeasedCall } from './leased-call';

const call = () => new LeasedCall({ workerId: 'w', workerEpoch: 'e1' }, {});

describe('HeldLeases', () => {
  it('has the digest of all held leases, whatever was granted and dropped before', () => {
    const grants = fc.array(fc.record({ sequence: fc.maxSafeNat(), kept: fc.boolean() }), { maxLength: 50 });
    fc.assert(
      fc.property(grants, (list) => {
        const leases = new HeldLeases();
        const held = list.map(({ sequence, kept }) => {
          const one = call();
          leases.granted(one, `${sequence}.${one.acquireId}`);
          return { one, sequence, kept };
        });
        for (const { one, kept } of held) if (!kept) leases.dropped(one);
        const left = held.filter(({ kept }) => kept);
        const sum = left.reduce((total, { sequence }) => total + BigInt(sequence), 0n);
        expect(leases.count).toBe(left.length);
        expect(BigInt(leases.digest)).toBe(sum % (1n << 40n));
      }),
    );
  });

  it('holds a lease that is still being asked for, and no other one of the same acquire', () => {
    const leases = new HeldLeases();
    const one = call();
    leases.asking(one);
    expect(leases.knows(`4.${one.acquireId}`)).toBe(true);
    leases.granted(one, `5.${one.acquireId}`);
    expect(leases.knows(`5.${one.acquireId}`)).toBe(true);
    expect(leases.knows(`4.${one.acquireId}`)).toBe(false);
    leases.dropped(one);
    expect(leases.knows(`5.${one.acquireId}`)).toBe(false);
  });

  it('stops held leases and pending acquires when the epoch has expired', () => {
    const leases = new HeldLeases();
    const [asking, holding] = [call(), call()];
    leases.asking(asking);
    leases.granted(holding, `5.${holding.acquireId}`);
    leases.forgetAll();
    expect([asking.cause, holding.cause]).toEqual(['fenced', 'fenced']);
    expect([leases.count, leases.digest]).toEqual([0, 0]);
  });
});
