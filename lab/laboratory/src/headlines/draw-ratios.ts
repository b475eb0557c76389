import { cutText } from '@broomwagon/contracts';
import { buildSvg } from '../output/plot';
import type { HeadlineResult } from './headline';

const ROW = 18;
/** Bounds of the axis; ratios beyond a bound are drawn at it. */
const [LOW, HIGH] = [0.25, 4];

const within = (ratio: number): number => Math.min(HIGH, Math.max(LOW, ratio));
const getColour = ({ holds }: HeadlineResult): string => (holds ? '#009e73' : '#d55e00');

/** Plot of ours / published for every headline, on a logarithmic axis; the bar is the range over the seeds. */
export function svgRatios(results: readonly HeadlineResult[]): string {
  const rows = { type: 'category', inverse: true, axisTick: { show: false }, axisLine: { show: false } } as const;
  const settings = results.map(({ headline }) => cutText(headline.setting, 44));
  const ranges = results.map((result) => {
    const scale = result.mean === 0 ? 0 : result.ratio / result.mean;
    const [from, to] = [within(result.least * scale), within(result.most * scale)];
    return { value: [from, from, within(result.ratio), to, to], itemStyle: { color: getColour(result) } };
  });
  const means = results.map((result) => {
    return { value: [within(result.ratio), result.headline.id], itemStyle: { color: getColour(result) } };
  });
  const size = { width: 1000, height: results.length * ROW + 80 };
  return buildSvg(size, {
    title: { text: 'Ours / published', left: 16, textStyle: { fontSize: 16 } },
    grid: { left: 300, right: 260, top: 40, bottom: 28 },
    xAxis: { type: 'log', logBase: 2, min: LOW, max: HIGH },
    yAxis: [
      { ...rows, data: results.map(({ headline }) => headline.id), axisLabel: { interval: 0 } },
      { ...rows, data: settings, axisLabel: { interval: 0, fontSize: 10, color: '#777' } },
    ],
    series: [
      { type: 'boxplot', boxWidth: [3, 4], itemStyle: { borderWidth: 0 }, data: ranges },
      {
        type: 'scatter',
        symbolSize: 7,
        data: means,
        markLine: { silent: true, symbol: 'none', label: { show: false }, data: [{ xAxis: 1 }] },
      },
    ],
  });
}
