import { describe, expect, it } from 'vitest';
import type { Report, RunReport } from './report';
import { reportText } from './screen';

const totals = {
  submitted: 64,
  accepted: 64,
  trained: 64,
  unfinished: 0,
  failed: 0,
  dropped: 0,
  lost: 0,
  duplicated: 0,
  faulty: 0,
};

function run(policy: RunReport['policy'], wallSeconds: number): RunReport {
  const step = {
    step: 1,
    roundId: 'r-1',
    kind: 'short' as const,
    groupsAccepted: 8,
    requestsDone: 40,
    requestsCut: 3,
    groupsRequeued: 2,
    wallSeconds: wallSeconds / 2,
    idleShare: 0.25,
    tailSeconds: 0.5,
    tailShare: 1 / wallSeconds,
    meanGenerationSeconds: 2,
    slowestGenerationSeconds: 4.5,
    engineSeconds: 100,
  };
  const steps = policy === 'wait' ? [step, step] : [step, { ...step, step: 2, kind: 'long' as const, requestsCut: 0 }];
  const overProvision = policy === 'wait' ? 1 : 1.375;
  return {
    policy,
    overProvision,
    parameters: { name: policy, overProvision },
    rebalance: null,
    wallSeconds,
    engineSeconds: 20 * wallSeconds,
    tailShare: 1 / wallSeconds,
    cost: {
      lengthBias: 0.98,
      offPolicyShare: 0.123,
      batchVariation: 0.2,
      waste: { tokens: 70, share: 0.01, byReason: {} },
    },
    control: {
      cpuSeconds: 2.5,
      byProgram: { redis: 0.5, worker: 2 },
      responses: 64,
      tokens: 20_000,
    },
    otherLengths: null,
    auto: null,
    totals,
    steps,
  };
}

function report(part: Partial<Report> = {}): Report {
  return {
    ...run('resume', 10),
    prompts: 16,
    groupsPerStep: 8,
    samplesPerGroup: 4,
    engines: { count: 8, simulated: true, speed: 40 },
    baseline: run('wait', 25),
    compared: [],
    speedup: 2.5,
    simulatedSpeedup: 2.5,
    clockLagShare: 0.012,
    valid: true,
    notes: [],
    ...part,
  };
}

describe('the report on the screen', () => {
  it('has a row per step kind, the baseline beside it, and the speed-up', () => {
    const text = reportText(report());
    expect(text).toMatch(/Policy resume, over-provision 1.375: 2 training steps in 10.0 s/);
    expect(text).toMatch(/short +1 +5\.00 s +2\.00 s +4\.50 s +25\.0 % +0\.50 s +10\.0 % +8 +40 +3 +2/);
    expect(text).toMatch(/long +1 +5\.00 s +2\.00 s +4\.50 s +25\.0 % +0\.50 s +10\.0 % +8 +40 +0 +2/);
    expect(text).toMatch(/Length bias 0\.98, off-policy 12\.3 %, waste 1\.0 % \(70 tokens\), batch variation 0\.20/);
    expect(text).toMatch(/By the clocks of the engines.*: 2\.50 \(500 s against 200 s\)/);
    expect(text).toMatch(/Policy wait: 2 training steps in 25.0 s/);
    expect(text).toMatch(
      /Speed-up over wait: 2\.50 \(25\.0 s against 10\.0 s, whole runs compared; control plane 0\.25 cores\)/,
    );
    expect(text).toMatch(
      'Control plane: 2.5 CPU s, 0.25 cores (worker 2.0, redis 0.5); 39.1 ms a response, 125.0 us a token',
    );
    expect(text).toMatch(/0 lost and 0 duplicated/);
    expect(text).not.toContain('auto chose');
    expect(text).toMatch(/Clock lag of the simulated engines: 1\.2 %; a report made with more than 5 % is invalid/);
  });

  it('has further runs, with their speed-up over the baseline', () => {
    const text = reportText(report({ compared: [run('drip', 12.5)] }));
    expect(text).toMatch(/Policy drip, over-provision 1\.375: 2 training steps in 12\.5 s/);
    expect(text).toMatch(/Speed-up of drip over wait: 2\.00 \(12\.5 s; control plane 0\.20 cores\)/);
  });

  it('has runs with and without a rebalance, and simulated seconds', () => {
    const counts = { policy: 'tier-cost' as const, plans: 4, moves: 90 };
    const baseline = { ...run('wait', 30), rebalance: { ...counts, mode: 'off' as const, plans: 0, moves: 0 } };
    const text = reportText(
      report({ ...run('wait', 20), rebalance: { ...counts, mode: 'on' }, baseline, speedup: 1.5 }),
    );
    expect(text).toMatch(
      /Policy wait, rebalance on \(tier-cost, 4 plans, 90 moves\): 2 .* in 20.0 s \(800 simulated s\)/,
    );
    expect(text).toMatch(/Policy wait, no rebalance: 2 training steps in 30.0 s \(1,200 simulated s\)/);
    expect(text).toMatch(/Speed-up over no rebalance: 1\.50/);
  });

  it('leaves out speed-up and clock lag without a baseline and with real engines', () => {
    const engines = { count: 2, simulated: false, speed: null };
    const text = reportText(report({ baseline: null, speedup: null, clockLagShare: null, engines }));
    expect(text).not.toMatch(/Speed-up|Clock lag|simulated/);
    expect(text).toMatch(/on 2 engines, 8 groups per training step/);
  });

  it('has the reasons for which it is invalid', () => {
    expect(reportText(report({ clockLagShare: 0.2, notes: ['This report is invalid: lag'] }))).toMatch(
      /This report is invalid: lag/,
    );
  });
});
