import { Logger } from '@nestjs/common';
import { expect, it } from 'vitest';
import { Alarms } from './alarms';
import { Metrics } from './metrics';

it('logs and counts an alarm once, however often it is checked, and logs its end', async () => {
  const said: unknown[] = [];
  Logger.overrideLogger({
    log: (...parts: unknown[]) => said.push(parts),
    warn: () => undefined,
    error: (...parts: unknown[]) => said.push(parts),
  });
  const metrics = new Metrics('test');
  const alarms = new Alarms(metrics);
  const look = (pool: string, name?: string) => alarms.look(pool, 'workers', name, 'No worker expires');
  for (const name of [undefined, 'workers-outage', 'workers-outage', 'workers-mass', undefined, undefined]) {
    look('p', name);
  }
  look('q', 'workers-mass');
  Logger.overrideLogger(false);
  expect(said).toEqual([
    [{ pool: 'p', alarm: 'workers-outage' }, 'No worker expires', 'Alarms'],
    [{ pool: 'p', alarm: 'workers-mass' }, 'No worker expires', 'Alarms'],
    [{ pool: 'p', alarm: 'workers-mass' }, 'The alarm has ended', 'Alarms'],
    [{ pool: 'q', alarm: 'workers-mass' }, 'No worker expires', 'Alarms'],
  ]);
  const text = await metrics.text();
  expect(text).toMatch(/alarms_total\{alarm="workers-mass",app="test"\} 2/);
  const active = (page: string) => [...page.matchAll(/alarms_active\{pool="(\w)",alarm="([\w-]+)",.*\} (\d)/g)];
  const shown = async () => active(await metrics.text()).map(([, ...series]) => series.join(' '));
  expect(await shown()).toEqual(['p workers-outage 0', 'p workers-mass 0', 'q workers-mass 1']);

  // The pool is deleted, then served again with the same alarm.
  await metrics.forget('pool', 'q');
  expect(await shown()).not.toContain('q workers-mass 1');
  look('q', 'workers-mass');
  expect(await shown()).toContain('q workers-mass 1');
  expect(alarms.list()).toMatchObject([{ pool: 'q', alarm: 'workers-mass', message: 'No worker expires' }]);
});
