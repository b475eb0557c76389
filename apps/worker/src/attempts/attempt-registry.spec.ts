import type { Claim } from '@broomwagon/contracts';
import { describe, expect, it } from 'vitest';
import { AttemptRegistry, MAX_TOMBSTONES } from './attempt-registry';

const worker = { workerId: 'w1', workerEpoch: 'e1' };
const claim = (requestId: string, attempt = '1-a') => ({ requestId, attempt }) as Claim;

describe('AttemptRegistry', () => {
  it('stops an attempt that is held, and only that attempt of its request', () => {
    const registry = new AttemptRegistry();
    const held = registry.admit(claim('a', '2-a'), worker)!;
    expect(registry.stop('a', '1-a', 'cut')).toBe(false);
    // The same number, assigned again by a Redis that was set back.
    expect(registry.stop('a', '2-b', 'cut')).toBe(false);
    expect(held.signal.aborted).toBe(false);
    expect(registry.stop('a', '2-a', 'cut')).toBe(true);
    expect(held.signal.aborted).toBe(true);
    expect(held.cause).toBe('cut');
  });

  it('lets a stop that overtakes its claim win', () => {
    const registry = new AttemptRegistry();
    registry.stop('a', '1-a', 'abort');
    expect(registry.admit(claim('a'), worker)!.cause).toBe('abort');
    expect(registry.admit(claim('b'), worker)!.signal.aborted).toBe(false);
  });

  it('remembers a bounded number of stops and forgets the oldest', () => {
    const registry = new AttemptRegistry();
    for (let index = 0; index <= MAX_TOMBSTONES; index++) registry.stop(`r${index}`, '1-a', 'cut');
    expect(registry.admit(claim('r0'), worker)!.signal.aborted).toBe(false);
    expect(registry.admit(claim('r1'), worker)!.signal.aborted).toBe(true);
    expect(registry.admit(claim(`r${MAX_TOMBSTONES}`), worker)!.signal.aborted).toBe(true);
  });

  it('takes each attempt once', () => {
    const registry = new AttemptRegistry();
    const first = registry.admit(claim('a'), worker);
    expect(registry.admit(claim('a'), worker)).toBeUndefined();
    registry.end(first!);
    expect(registry.size).toBe(0);
  });

  it('stops and forgets all attempts when its epoch expires', async () => {
    const registry = new AttemptRegistry();
    const held = registry.admit(claim('a'), worker)!;
    held.stop('cut');
    const ended = registry.nextEnd(new AbortController().signal);
    registry.forgetAll();
    await ended;
    expect(held.isExpired).toBe(true);
    expect(registry.size).toBe(0);
    // The end of the attempt in the old epoch does not touch the attempt of this name in the new epoch.
    const anew = registry.admit(claim('a'), { ...worker, workerEpoch: 'e2' })!;
    registry.end(held);
    expect(registry.list()).toEqual([anew]);
  });
});
