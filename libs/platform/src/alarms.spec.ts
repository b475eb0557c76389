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
  expect(text).toMatch(/alarms_active\{alarm="workers-mass",app="test"\} 1/);
  expect(text).toMatch(/alarms_active\{alarm="workers-outage",app="test"\} 0/);
});
