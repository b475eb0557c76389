import { describe, expect, it } from 'vitest';
import { htmlReport } from './html-report';
import { svgPlot } from './svg-plot';
import { niceTicks } from './ticks';

describe('plots and pages', () => {
  it('put round ticks around all values', () => {
    expect(niceTicks([0.1, 4.36], false)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(niceTicks([0.62, 1], true)).toEqual([0.6, 0.7, 0.8, 0.9, 1]);
    expect(niceTicks([7], false)[0]).toBe(0);
    expect(niceTicks([0, 0], false).length).toBeGreaterThan(1);
  });

  it('draw every point within the frame, and every name in the legend', () => {
    const svg = svgPlot({
      title: 'a < b & "c"',
      xLabel: 'x',
      yLabel: 'y',
      series: [
        { name: 'one', points: [{ x: 0, y: 1, label: '1.25' }] },
        { name: 'two', points: [{ x: 3, y: 9 }], isScatter: true },
      ],
    });
    expect(svg).toContain('a &lt; b &amp; &quot;c&quot;');
    const circles = [...svg.matchAll(/cx="([\d.]+)" cy="([\d.]+)" r="3.5"/g)].map(([, x, y]) => [Number(x), Number(y)]);
    expect(circles).toHaveLength(2);
    for (const [x, y] of circles) {
      expect(x).toBeGreaterThanOrEqual(64);
      expect(x).toBeLessThanOrEqual(570);
      expect(y).toBeGreaterThanOrEqual(44);
      expect(y).toBeLessThanOrEqual(386);
    }
    for (const name of ['one', 'two', '1.25']) expect(svg).toContain(`>${name}</text>`);
  });

  it('make a page that needs nothing else, and no markup of what it is given', () => {
    const page = htmlReport('<b>', 'intro', [{ title: 'part', table: { head: ['h'], rows: [['<script>']] } }]);
    expect(page).not.toMatch(/<script|<b>|src=|href=/);
    expect(page).toContain('&lt;script&gt;');
  });
});
