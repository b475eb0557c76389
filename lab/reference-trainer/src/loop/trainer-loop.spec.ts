import * as fc from 'fast-check';
import { BroomwagonError } from '@broomwagon/contracts';
import { describe, expect, inject, it } from 'vitest';
import { type HeldStep, listTrainedGroups } from '../results/held-step';
import type { ResultLine } from '../results/result-line';
import { FakeCoordinator } from './fake-coordinator.fixture';
import { Fleet } from '../fleet/fleet';
import type { LostGroup } from './lost-groups';
import { Operations } from './operations';
import { TrainerLoop } from './trainer-loop';
import type { TrainerLoopHooks, TrainerLoopSettings } from './trainer-loop.types';

const prompts = (count: number) =>
  Array.from({ length: count }, (_, line) => ({ id: `p${line}`, line, prompt: { text: `prompt ${line}` } }));

function trainer(
  coordinator: FakeCoordinator,
  settings: Partial<TrainerLoopSettings> = {},
  results = new Map<string, readonly ResultLine[]>(),
  hooks: Partial<TrainerLoopHooks> = {},
) {
  const operations = new Operations(coordinator.client, 'p', { deadlineMs: 60_000, signal: settings.signal });
  const fleet = new Fleet(operations, operations, [], 1, 'run');
  const sink = {
    writeRound: async ({ roundId }: { roundId: string }, lines: readonly ResultLine[]) => {
      expect(results.has(roundId), `${roundId} is written twice`).toBe(false);
      results.set(roundId, [...lines]);
    },
  };
  return new TrainerLoop(
    operations,
    {
      job: 'j',
      prompts: prompts(10),
      groupsPerStep: 4,
      samples: 2,
      maxTokens: 8,
      sampling: { seed: 1 },
      policy: { name: 'resume', overProvision: 1.5 },
      lookMs: 0,
      ...settings,
    },
    {
      sink,
      setWeightVersion: async (version, current) => void (await fleet.setWeightVersion(version, current)),
      repeatWeights: (job, trainerEpoch) => fleet.repeatWeights(job, trainerEpoch),
      ...hooks,
    },
  );
}

/** Steps that earlier trainers have trained. */
const toHeldSteps = (results: Map<string, readonly ResultLine[]>): HeldStep[] =>
  [...results].map(([roundId, lines]) => ({
    step: Number(roundId.split('-').at(-1)),
    groups: listTrainedGroups(lines),
  }));

const pairs = (results: Map<string, readonly ResultLine[]>) =>
  [...results.values()].flat().map(({ promptId, sampleIndex }) => `${promptId}/${sampleIndex}`);

describe('the trainer loop', () => {
  it('has groups with lost tokens generated again, and keeps the other groups of their round', async () => {
    const coordinator = new FakeCoordinator();
    for (const groupId of ['p0', 'p2', 'p5']) coordinator.losing.add(groupId);
    const results = new Map<string, readonly ResultLine[]>();
    const missing: (readonly string[])[] = [];
    const loop = trainer(coordinator, {}, results, { onMissing: (groupIds) => missing.push(groupIds) });
    const steps = await loop.run();
    expect(missing).toEqual([['p0', 'p2'], ['p5']]);
    expect(pairs(results).toSorted()).toEqual(prompts(10).flatMap(({ id }) => [`${id}/0`, `${id}/1`]));
    expect(steps.map(({ step }) => step)).toEqual([1, 2, 3]);
    expect(loop.missing).toEqual([]);
    expect(coordinator.calls.filter((operation) => operation === 'round.cancel')).toHaveLength(2);
  });

  it('continues after an operator has cancelled its round, also between its last result and its end', async () => {
    for (const operation of ['round.status', 'round.results', 'round.close']) {
      const coordinator = new FakeCoordinator();
      const results = new Map<string, readonly ResultLine[]>();
      const cancelled: string[] = [];
      let times = 0;
      coordinator.before = (called) => {
        if (called === operation && ++times === 2) coordinator.cancel();
      };
      await trainer(coordinator, {}, results, { onCancelled: (roundId) => cancelled.push(roundId) }).run();
      expect(pairs(results).toSorted(), operation).toEqual(prompts(10).flatMap(({ id }) => [`${id}/0`, `${id}/1`]));
      expect(cancelled).toEqual(operation === 'round.close' ? [] : ['j-step-1']);
    }
  });

  it('submits groups again whose prompts the payload store has lost, each once', async () => {
    const coordinator = new FakeCoordinator();
    const large = { text: 'x'.repeat(40_000) };
    const all = prompts(10).map((prompt, index) => (index < 5 ? { ...prompt, prompt: large } : prompt));
    for (const groupId of ['p0', 'p3', 'p8']) coordinator.losingPrompts.add(groupId);
    coordinator.failing.add('p1');
    const missing: (readonly string[])[] = [];
    const lost: (readonly LostGroup[])[] = [];
    const results = new Map<string, readonly ResultLine[]>();
    const loop = trainer(coordinator, { prompts: all }, results, {
      onMissing: (groupIds) => missing.push(groupIds),
      onLost: (groups) => lost.push(groups),
    });
    await loop.run();
    const failed = { groupId: 'p1', state: 'failed', reason: 'engine-rejected', requestId: 'p1/0' };
    expect(loop.missing).toEqual(['p1']);
    expect([lost, loop.lost]).toEqual([[[failed]], [failed]]);
    expect(missing.flat().toSorted()).toEqual(['p0', 'p3', 'p8']);
    expect(new Set(pairs(results)).size).toBe(18);
  });

  it('counts a group as submitted that Redis has again, because a set-back has undone its drop', async () => {
    const coordinator = new FakeCoordinator();
    coordinator.losing.add('p0');
    const results = new Map<string, readonly ResultLine[]>();
    let restore: (() => void) | undefined;
    coordinator.before = (operation) => {
      if (operation === 'round.cancel') restore = coordinator.saved();
      if (operation !== 'round.next') return;
      restore?.();
      restore = undefined;
    };
    await trainer(coordinator, {}, results).run();
    expect(pairs(results).toSorted()).toEqual(prompts(10).flatMap(({ id }) => [`${id}/0`, `${id}/1`]));
    expect(coordinator.calls).toContain('longtail.drop');
  });

  it('trains every sample once, in exactly ceil(prompts / groups) steps, one weight version a step', async () => {
    const coordinator = new FakeCoordinator();
    const results = new Map<string, readonly ResultLine[]>();
    const versions: number[] = [];
    const steps = await trainer(coordinator, {}, results, {
      setWeightVersion: async (version) => void versions.push(version),
    }).run();
    expect(steps.map(({ kind, groupsAccepted }) => [kind, groupsAccepted])).toEqual([
      ['short', 4],
      ['short', 4],
      ['long', 2],
    ]);
    expect(versions).toEqual([0, 1, 2]);
    // The hook returns no version: the rounds have the version of the pool.
    expect(coordinator.weightVersions).toEqual([undefined, undefined, undefined]);
    expect(pairs(results)).toHaveLength(20);
    expect(new Set(pairs(results)).size).toBe(20);
    expect([...results.values()][0]?.[0]).toMatchObject({ text: 't', tokenIds: [7], finishReason: 'stop' });
  });

  const death = fc.record({
    callsToLive: fc.integer({ min: 0, max: 25 }),
    when: fc.constantFrom('before' as const, 'after' as const),
  });

  it('continues where a dead trainer ended, whichever call it died at', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(death, { maxLength: 6 }), async (deaths) => {
        const coordinator = new FakeCoordinator();
        const results = new Map<string, readonly ResultLine[]>();
        for (const { callsToLive, when } of deaths) {
          let left = callsToLive;
          coordinator.before = coordinator.after = () => undefined;
          coordinator[when] = () => {
            if (left-- <= 0) throw new Error('killed');
          };
          await trainer(coordinator, { held: toHeldSteps(results) }, results)
            .run()
            .catch((error: Error) => expect(error.message).toBe('killed'));
        }
        coordinator.before = coordinator.after = () => undefined;
        await trainer(coordinator, { held: toHeldSteps(results) }, results).run();
        expect(coordinator.trained.toSorted()).toEqual(
          prompts(10)
            .map(({ id }) => id)
            .toSorted(),
        );
        expect(new Set(pairs(results)).size).toBe(20);
        expect(pairs(results)).toHaveLength(20);
      }),
    );
  });

  const setBack = fc.record({ from: fc.integer({ min: 0, max: 60 }), calls: fc.integer({ min: 0, max: 25 }) });

  /** Makes a function to be called at each call, which sets the coordinator back to its state `calls` calls before. */
  function losing(coordinator: FakeCoordinator, losses: readonly { from: number; calls: number }[]): () => void {
    const earlier = new Map<number, () => void>();
    let calls = 0;
    return () => {
      calls += 1;
      for (const loss of losses) {
        if (calls !== loss.from + loss.calls || !earlier.has(loss.from)) continue;
        earlier.get(loss.from)!();
        // A lost state is not restored later.
        for (const from of earlier.keys()) if (from > loss.from) earlier.delete(from);
      }
      for (const { from } of losses) if (calls === from) earlier.set(from, coordinator.saved());
    };
  }

  it('trains every sample once when the coordinator is set back, to whatever time and at whichever call', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(setBack, { maxLength: 3 }), fc.subarray(['p2', 'p5']), async (losses, lost) => {
        const coordinator = new FakeCoordinator();
        for (const groupId of lost) coordinator.losing.add(groupId);
        const results = new Map<string, readonly ResultLine[]>();
        coordinator.before = losing(coordinator, losses);
        await trainer(coordinator, {}, results).run();
        const all = prompts(10).map(({ id }) => id);
        expect(coordinator.trained.toSorted()).toEqual(all.toSorted());
        expect(pairs(results).toSorted()).toEqual(all.flatMap((id) => [`${id}/0`, `${id}/1`]).toSorted());
      }),
      { numRuns: 300 * inject('runsFactor') },
    );
  });

  it('continues when Redis is restored after a takeover that found no job in an empty one', async () => {
    const coordinator = new FakeCoordinator();
    const results = new Map<string, readonly ResultLine[]>();
    const empty = coordinator.saved();
    let restore: (() => void) | undefined;
    let isRestored = false;
    coordinator.before = (operation) => {
      if (operation === 'round.close' && restore === undefined) {
        restore = coordinator.saved();
        empty();
      } else if (operation === 'job.reconcile' && !isRestored) {
        isRestored = true;
        restore!();
      }
    };
    await trainer(coordinator, {}, results).run();
    expect(isRestored).toBe(true);
    expect(pairs(results).toSorted()).toEqual(prompts(10).flatMap(({ id }) => [`${id}/0`, `${id}/1`]));
  });

  it('trains every sample once or reports it, whenever trainers die and the coordinator is set back', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(setBack, { maxLength: 3 }),
        fc.array(fc.integer({ min: 1, max: 25 }), { maxLength: 5 }),
        fc.subarray(['p0', 'p4', 'p9']),
        async (losses, lives, failing) => {
          const coordinator = new FakeCoordinator();
          for (const id of failing) coordinator.failing.add(id);
          const results = new Map<string, readonly ResultLine[]>();
          let left = 0;
          const lose = losing(coordinator, losses);
          coordinator.before = () => {
            lose();
            if (left-- <= 0) throw new Error('killed');
          };
          let last = trainer(coordinator);
          for (const life of [...lives, Infinity]) {
            left = life;
            last = trainer(coordinator, { held: toHeldSteps(results) }, results);
            await last.run().catch((error: Error) => expect(error.message).toBe('killed'));
          }
          const all = prompts(10).map(({ id }) => id);
          const named = last.missing;
          expect(named.filter((id) => !failing.includes(id))).toEqual([]);
          expect(pairs(results).toSorted()).toEqual(
            all.flatMap((id) => (named.includes(id) ? [] : [`${id}/0`, `${id}/1`])).toSorted(),
          );
          expect(coordinator.trained.toSorted()).toEqual(all.filter((id) => !named.includes(id)).toSorted());
        },
      ),
      { numRuns: 300 * inject('runsFactor') },
    );
  });

  it('reports every prompt that it has not trained when an error ends it, or groups have failed', async () => {
    const coordinator = new FakeCoordinator();
    coordinator.before = (operation) => {
      if (operation === 'payload.get' && coordinator.trained.length >= 4) {
        throw new BroomwagonError('PAYLOAD_NOT_FOUND', 'gone');
      }
    };
    const loop = trainer(coordinator);
    const error = await loop.run().catch((thrown: unknown) => thrown);
    const missing = prompts(10).flatMap(({ id }) => (coordinator.trained.includes(id) ? [] : [id]));
    expect(missing).toHaveLength(6);
    expect(error).toMatchObject({ code: 'PAYLOAD_NOT_FOUND', details: { missing } });
    const other = new FakeCoordinator();
    other.failing.add('p9');
    const short = trainer(other);
    await short.run();
    expect(short.missing).toEqual(['p9']);
  });

  it('reports lost steps and groups', async () => {
    const coordinator = new FakeCoordinator();
    const lost: unknown[] = [];
    const restores: (() => void)[] = [];
    coordinator.after = (operation) => {
      if (operation === 'round.open') restores.push(coordinator.saved());
      if (operation === 'round.close' && restores.length === 2) restores.splice(0, 2)[0]!();
    };
    await trainer(coordinator, {}, new Map(), { onReconciled: (what) => void lost.push(what) }).run();
    expect(lost).toEqual([{ lostSteps: [1, 2], lostGroups: 2 }]);
  });

  it.each(['weights.begin', 'round.close'])('repeats its weights when Redis is set back to %s', async (lost) => {
    const coordinator = new FakeCoordinator();
    let restore: (() => void) | undefined;
    let isOver = false;
    coordinator.after = (operation) => {
      if (operation === lost && coordinator.trained.length > 0) restore ??= coordinator.saved();
      if (operation !== 'round.submit' || isOver || restore === undefined) return;
      restore();
      isOver = true;
    };
    await trainer(coordinator).run();
    expect({ conflicts: coordinator.weightConflicts, ...coordinator.weights }).toEqual({ conflicts: 0, version: 2 });
  });

  it('keeps reading while more groups are counted than there are, but not for ever', async () => {
    const coordinator = new FakeCoordinator();
    coordinator.countedTooMany = 1;
    let looks = 0;
    coordinator.after = (operation) => {
      if (operation === 'round.results' && ++looks === 100) coordinator.countedTooMany = 0;
    };
    await trainer(coordinator).run();
    expect(coordinator.trained).toHaveLength(10);
    const other = new FakeCoordinator();
    other.countedTooMany = 1;
    await expect(trainer(other).run()).rejects.toMatchObject({ code: 'INTERNAL' });
  });

  it('ends with the error that it meets when it reconciles again and again and trains nothing', async () => {
    const coordinator = new FakeCoordinator();
    coordinator.before = (operation) => {
      if (operation === 'round.results') throw new BroomwagonError('ROUND_MISMATCH', 'another round');
    };
    const startedMs = performance.now();
    await expect(trainer(coordinator, { lookMs: 1 }).run()).rejects.toMatchObject({ code: 'ROUND_MISMATCH' });
    expect(coordinator.calls.filter((call) => call === 'round.takeover')).toHaveLength(50);
    // Pauses between the reconciliations: 1, 2, 4 and then always 8 ms.
    expect(performance.now() - startedMs).toBeGreaterThan(300);
  });

  it('replaces groups that fail while there are prompts, and trains fewer in the last step', async () => {
    for (const failing of [['p0'], ['p9'], ['p0', 'p9'], ['p6', 'p7', 'p8', 'p9']]) {
      const coordinator = new FakeCoordinator();
      for (const id of failing) coordinator.failing.add(id);
      const steps = await trainer(coordinator, { policy: { name: 'resume', overProvision: 1 } }).run();
      expect(coordinator.trained.toSorted()).toEqual(
        prompts(10)
          .map(({ id }) => id)
          .filter((id) => !failing.includes(id)),
      );
      expect(steps[0]!.groupsAccepted).toBe(4);
    }
  });

  const words = ['round.next', 'round.open', 'round.submit', 'round.status', 'round.results', 'round.close'] as const;
  it.each(words)('is fenced when another trainer has taken over at its %s', async (word) => {
    const coordinator = new FakeCoordinator();
    let taken = false;
    coordinator.before = (operation) => {
      // The first call for a job has no epoch.
      if (operation !== word || taken || !coordinator.calls.includes('round.open')) return;
      taken = true;
      void coordinator.client.callWithRetry('p', 'round.takeover', { job: 'j', takeoverId: 't' }, { deadlineMs: 1 });
    };
    await expect(trainer(coordinator).run()).rejects.toMatchObject({ code: 'FENCED' });
    // After the takeover, the trainer makes only the refused call.
    const after = coordinator.calls.slice(coordinator.calls.indexOf('round.takeover') + 1);
    expect(after[0]).toBe(word);
    // The trainer only checks whether Redis was set back.
    expect(new Set(after.slice(1))).toEqual(new Set(['round.status']));
  });

  it('sends prompts over 32 kB in chunks and the others inline, in pages below the body limit', async () => {
    const coordinator = new FakeCoordinator();
    const large = 'x'.repeat(600_000);
    const medium = 'y'.repeat(30_000);
    const mixed = prompts(70);
    for (const [index, record] of mixed.entries()) record.prompt.text = index === 0 ? large : medium;
    await trainer(coordinator, { prompts: mixed, groupsPerStep: 70, samples: 1 }).run();
    const sent = [...coordinator.groups.values()];
    expect(sent[0]).toMatchObject({ promptRef: 'ref:p0' });
    expect(sent[0]?.prompt).toBeUndefined();
    expect(sent[1]?.prompt).toEqual({ text: medium });
    expect(coordinator.payloads.get('p0')).toHaveLength(3);
    // Another prompt has another name: a payload never changes.
    expect([...coordinator.payloadNames]).toEqual([expect.stringMatching(/^prompt\.[0-9a-f]{32}$/)]);
    expect(JSON.parse(Buffer.concat(coordinator.payloads.get('p0')!).toString())).toEqual({ text: large });
    expect(coordinator.calls.filter((call) => call === 'round.submit').length).toBeGreaterThan(4);
  });

  it('stops when its signal is aborted', async () => {
    const controller = new AbortController();
    const coordinator = new FakeCoordinator();
    coordinator.before = (operation) => operation === 'round.results' && controller.abort();
    await expect(trainer(coordinator, { signal: controller.signal, lookMs: 10_000 }).run()).rejects.toThrow(/abort/);
  });
});
