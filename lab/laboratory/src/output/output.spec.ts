import { describe, expect, it } from 'vitest';
import { htmlReport } from './html-report';
import { svgPlot } from './plot';

describe('plots and pages', () => {
  it('draw every series through its points, with its name in the legend and the labels of its points', () => {
    const svg = svgPlot({
      title: 'a < b & "c"',
      xLabel: 'the x',
      yLabel: 'the y',
      guide: { y: 5, text: 'a guide' },
      series: [
        { name: 'one', points: [{ x: 0, y: 1, label: '1.25' }] },
        {
          name: 'two',
          points: [
            { x: 1, y: 3 },
            { x: 3, y: 9 },
          ],
        },
      ],
    });
    expect(svg).toContain('a &lt; b &amp; &quot;c&quot;');
    for (const text of ['the x', 'the y', 'one', 'two', '1.25', 'a guide']) expect(svg).toContain(`>${text}</text>`);
    // The line of the second series goes from the lower left to the upper right.
    const line = /d="M(\S+) (\S+)L(\S+) (\S+)" [^>]*stroke="#d55e00"/.exec(svg)!;
    const [x1, y1, x2, y2] = line.slice(1).map(Number);
    expect(x2! - x1!).toBeGreaterThan(100);
    expect(y1! - y2!).toBeGreaterThan(100);
  });

  it('make a self-contained page, and escape markup in texts', () => {
    const page = htmlReport('<b>', 'intro', [{ title: 'part', table: { head: ['h'], rows: [['<script>']] } }]);
    expect(page).not.toMatch(/<script|<b>|src=|href=/);
    expect(page).toContain('&lt;script&gt;');
  });
});
