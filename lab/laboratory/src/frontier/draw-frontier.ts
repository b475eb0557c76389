import type { ReportTable } from '../output/html-report';
import { svgPlot, type Plot } from '../output/plot';
import type { Frontier, FrontierPoint } from './frontier';

type Price = 'offPolicyShare' | 'lengthBias' | 'batchVariation' | 'wasteShare';
const PRICES: Record<Price, string> = {
  offPolicyShare: 'tokens made under older weights, share',
  lengthBias: 'trained mean length / mean of the data (1 = unbiased)',
  batchVariation: 'variation of the steps’ mean lengths (standard deviation / mean)',
  wasteShare: 'share of all tokens that were thrown away',
};

/** One plot per price: speed over price, with a curve for each policy and its over-provisions as labels. */
export function frontierPlots(title: string, { points }: Frontier): { price: Price; svg: string }[] {
  const families = [...new Set(points.map(({ family }) => family))];
  return (Object.keys(PRICES) as Price[]).map((price) => {
    const plot: Plot = {
      title: `${title}: speed over ${price === 'lengthBias' ? 'length bias' : PRICES[price].split(',')[0]!}`,
      xLabel: PRICES[price],
      yLabel: 'speed, plain synchronous rollout = 1',
      isTight: price === 'lengthBias',
      guide: { y: 1, text: 'wait' },
      series: families.map((family) => ({
        name: family,
        points: points
          .filter((point) => point.family === family)
          .map((point) => ({
            x: point[price],
            y: point.speedup,
            label: `${point.overProvision}`,
            xRange: point.ranges?.[price],
            yRange: point.ranges?.speedup,
          })),
      })),
    };
    return { price, svg: svgPlot(plot) };
  });
}

const rangeText = (range: readonly [number, number] | undefined): string =>
  range === undefined ? '' : ` (${range.map((value) => value.toFixed(2)).join(' to ')})`;
const percent = (share: number): string => `${Math.round(share * 100)} %`;

export function frontierTable({ points }: Frontier): ReportTable {
  return {
    head: [
      'policy',
      'over-provision',
      'speed',
      'with the end',
      'off-policy',
      'span',
      'bias',
      'variation',
      'waste',
      'worst step',
    ],
    rows: points.map((point: FrontierPoint) => [
      point.family,
      `${point.overProvision}`,
      `${point.speedup.toFixed(2)}x${rangeText(point.ranges?.speedup)}`,
      `${point.wholeSpeedup.toFixed(2)}x`,
      percent(point.offPolicyShare),
      `${point.versionSpan}`,
      point.lengthBias.toFixed(3),
      point.batchVariation.toFixed(2),
      percent(point.wasteShare),
      `${Math.round(point.worstStepSeconds)} s`,
    ]),
  };
}
