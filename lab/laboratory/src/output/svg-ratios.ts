import { cutText } from '@broomwagon/contracts';
import type { HeadlineResult } from '../headlines/headline';
import { escaped, gridLine, svg } from './svg-plot';

const ROW = 18;
const LEFT = 300;
const RIGHT = 240;
const WIDTH = 980;
const TICKS = [0.25, 0.5, 0.75, 1, 1.5, 2, 3];
const [LOW, HIGH] = [0.2, 3.2];

/** Ours / published for every headline, on a logarithmic axis; the bar is the range over the seeds. */
export function svgRatios(results: readonly HeadlineResult[]): string {
  const top = 40;
  const bottom = top + results.length * ROW;
  const px = (ratio: number): number => {
    const share = Math.log(Math.min(HIGH, Math.max(LOW, ratio)) / LOW) / Math.log(HIGH / LOW);
    return Math.round((LEFT + share * (WIDTH - LEFT - RIGHT)) * 10) / 10;
  };
  const parts = [
    `<text x="12" y="22" font-size="16" font-weight="600">Ours / published</text>`,
    ...TICKS.map((tick) => gridLine(px(tick), top, px(tick), bottom)),
    `<line x1="${px(1)}" y1="${top}" x2="${px(1)}" y2="${bottom}" stroke="#777"/>`,
    ...TICKS.map((tick) => `<text x="${px(tick)}" y="${bottom + 16}" text-anchor="middle">${tick}</text>`),
    ...results.flatMap((result, index) => row(result, top + index * ROW + ROW / 2, px)),
  ];
  return svg(WIDTH, bottom + 28, parts);
}

function row(
  { headline, mean, least, most, ratio, holds }: HeadlineResult,
  y: number,
  px: (ratio: number) => number,
): string[] {
  const colour = holds ? '#009e73' : '#d55e00';
  const scale = mean === 0 ? 0 : ratio / mean;
  return [
    `<text x="${LEFT - 10}" y="${y + 4}" text-anchor="end" font-size="11">${escaped(headline.id)}</text>`,
    `<line x1="${px(least * scale)}" y1="${y}" x2="${px(most * scale)}" y2="${y}" stroke="${colour}" stroke-width="3"/>`,
    `<circle cx="${px(ratio)}" cy="${y}" r="4" fill="${colour}"><title>${escaped(headline.what)}: ${ratio.toFixed(2)}</title></circle>`,
    `<text x="${WIDTH - RIGHT + 14}" y="${y + 4}" font-size="10" fill="#777">${escaped(cutText(headline.setting, 44))}</text>`,
  ];
}
