import { expect, it } from 'vitest';
import { CpuMeter } from './cpu-meter';

it('counts the time since its creation by program, and a restarted process from its start', () => {
  const times = new Map([
    [1, 10],
    [2, 20],
    [3, 5],
  ]);
  let processes = [
    { name: 'redis', pid: 1 },
    { name: 'worker-1', pid: 2 },
    { name: 'worker-2', pid: 3 },
  ];
  const meter = new CpuMeter(
    () => processes,
    (pid) => times.get(pid) ?? Number.NaN,
  );
  times.set(1, 12).set(2, 24).set(4, 1.5);
  processes = [...processes.slice(0, 2), { name: 'worker-2', pid: 4 }];
  expect(meter.seconds()).toEqual({ redis: 2, worker: 5.5 });
  processes.push({ name: 'worker-3', pid: 9 });
  expect(meter.seconds()).toBeNull();
});

it.skipIf(process.platform !== 'linux')('reads the time of this process', () => {
  const meter = new CpuMeter(() => [{ name: 'trainer', pid: process.pid }]);
  const { trainer } = meter.seconds()!;
  expect(trainer).toBeGreaterThanOrEqual(0);
});
