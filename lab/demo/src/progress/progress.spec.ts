import { describe, expect, it } from 'vitest';
import { ProgressDisplay } from './progress-display';
import { renderLost, renderProgress, renderReconciled, renderStep, type ProgressView } from './progress-view';

const view: ProgressView = {
  policy: 'resume',
  step: 3,
  steps: 20,
  kind: 'short',
  acceptedGroups: 8,
  neededGroups: 16,
  requestsDone: 70,
  requestsCut: 5,
  groupsRequeued: 2,
  elapsedSeconds: 1.26,
  servers: [
    { serverId: 'a', inflight: 12 },
    { serverId: 'b', inflight: 3 },
  ],
};

function output(isTTY: boolean) {
  let written = '';
  return {
    isTTY,
    columns: 60,
    write: (text: string | Uint8Array) => {
      written += text.toString();
      return true;
    },
    written: () => written,
  };
}

describe('progress', () => {
  it('shows accepted of needed groups, requests in flight per server, cut and requeued', () => {
    expect(renderProgress(view, 120)).toEqual([
      `resume: step 3 of 20 (short)  [${'='.repeat(14)}${' '.repeat(14)}] 8/16 groups  1.3 s`,
      '  requests done 70, cut 5, groups requeued 2',
      '  in flight 15: 12 3',
    ]);
  });

  it('never wraps', () => {
    const servers = Array.from({ length: 500 }, (_, index) => ({ serverId: `s${index}`, inflight: 1_000 }));
    for (const line of renderProgress({ ...view, servers }, 40)) expect(line.length).toBeLessThan(40);
  });

  it('prints a finished step in one line', () => {
    const step = {
      ...view,
      roundId: 'r',
      groupsAccepted: 16,
      wallSeconds: 2.04,
      idleShare: 0.423,
      tailSeconds: 1,
      tailShare: 0.49,
      meanGenerationSeconds: 1,
      slowestGenerationSeconds: 2,
      engineSeconds: null,
    };
    expect(renderStep('resume', step, 20)).toBe(
      'resume: step 3 of 20 (short)  16 groups, 70 requests done, 5 cut, 2 groups requeued, 2.0 s, idle 42 %',
    );
  });

  it('rewrites its live lines on a terminal and keeps printed lines', () => {
    const terminal = output(true);
    const display = new ProgressDisplay(terminal);
    display.show(view);
    display.say('step done');
    expect(terminal.written()).toContain('step 3 of 20');
    expect(terminal.written().endsWith('\u001B[3F\u001B[0Jstep done\n')).toBe(true);
  });

  it('prints only lines that stay if the output is no terminal', () => {
    const pipe = output(false);
    const display = new ProgressDisplay(pipe);
    display.show(view);
    display.say('step done');
    expect(pipe.written()).toBe('step done\n');
  });
});

it('prints the steps and groups that Redis had lost', () => {
  expect(renderReconciled({ lostSteps: [3, 4], lostGroups: 2 })).toMatch(
    /the trained steps 3, 4 and 2 submitted groups/,
  );
  expect(renderReconciled({ lostSteps: [], lostGroups: 0 })).toMatch(/no trained step and 0 submitted groups/);
});

it('names the first groups that ended without training, with their reasons', () => {
  const dropped = { groupId: 'p2', state: 'dropped', reason: 'timeout' };
  const failed = {
    groupId: 'p1',
    state: 'failed',
    reason: 'engine-rejected',
    requestId: 'j/p1/0',
    message: 'too long',
  };
  expect(renderLost([failed, dropped])).toBe(
    'Groups that ended without training: p1 failed for j/p1/0 (engine-rejected: too long); p2 dropped (timeout)',
  );
  expect(renderLost(Array.from({ length: 5 }, () => dropped))).toMatch(/; p2 dropped \(timeout\); and 2 more$/);
});
