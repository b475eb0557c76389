import { useId, type Ref } from 'react';
import type { Point } from './points';

const WIDTH = 440;
const HEIGHT = 300;
const MARGIN = { left: 58, right: 16, top: 12, bottom: 40 };
const TICKS = 4;
const LABEL = { width: 96, height: 12 };

export interface Axis {
  label: string;
  of(point: Point): number;
  format(value: number): string;
  /** A value that the axis includes. */
  include: number;
}

/** Inks are attributes, not styles, so that the drawing is the same when it is saved. */
export interface ScatterInks {
  text: string;
  grid: string;
  step: string;
  own: string;
  other: string;
}

interface ScatterProps {
  title: string;
  points: readonly Point[];
  x: Axis;
  y: Axis;
  inks: ScatterInks;
  ref: Ref<SVGSVGElement>;
}

/** Points by two of their costs. Circles: steps; squares: policies; the policy of the job is filled. */
export function Scatter({ title, points, x, y, inks, ref }: ScatterProps) {
  const id = useId();
  const [left, right] = rangeOf(points.map(x.of), x.include);
  const [low, high] = rangeOf(points.map(y.of), y.include);
  const atX = (value: number) => MARGIN.left + ((value - left) / (right - left)) * (WIDTH - MARGIN.left - MARGIN.right);
  const atY = (value: number) =>
    HEIGHT - MARGIN.bottom - ((value - low) / (high - low)) * (HEIGHT - MARGIN.top - MARGIN.bottom);
  const named = labelled(points, (point) => [atX(x.of(point)), atY(y.of(point))]);
  const ticks = Array.from({ length: TICKS + 1 }, (_, index) => index / TICKS);
  return (
    <svg
      ref={ref}
      xmlns="http://www.w3.org/2000/svg"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      width={WIDTH}
      style={{ maxWidth: '100%', height: 'auto' }}
      role="img"
      aria-labelledby={id}
      fontFamily="sans-serif"
      fontSize={11}
    >
      <title id={id}>{title}</title>
      {ticks.map((part) => {
        const [xValue, yValue] = [left + part * (right - left), low + part * (high - low)];
        return (
          <g key={part} fill={inks.text}>
            <line x1={atX(xValue)} x2={atX(xValue)} y1={MARGIN.top} y2={HEIGHT - MARGIN.bottom} stroke={inks.grid} />
            <line x1={MARGIN.left} x2={WIDTH - MARGIN.right} y1={atY(yValue)} y2={atY(yValue)} stroke={inks.grid} />
            <text x={atX(xValue)} y={HEIGHT - MARGIN.bottom + 14} textAnchor="middle">
              {x.format(xValue)}
            </text>
            <text x={MARGIN.left - 6} y={atY(yValue) + 4} textAnchor="end">
              {y.format(yValue)}
            </text>
          </g>
        );
      })}
      <text x={(MARGIN.left + WIDTH - MARGIN.right) / 2} y={HEIGHT - 8} textAnchor="middle" fill={inks.text}>
        {x.label}
      </text>
      <text transform={`translate(12 ${HEIGHT / 2}) rotate(-90)`} textAnchor="middle" fill={inks.text}>
        {y.label}
      </text>
      {points.map((point) => {
        const [px, py] = [atX(x.of(point)), atY(y.of(point))];
        const about = `${point.name}: ${x.label} ${x.format(x.of(point))}, ${y.label} ${y.format(y.of(point))}`;
        if (point.kind === 'step') {
          return (
            <circle key={point.name} cx={px} cy={py} r={4} fill="none" stroke={inks.step} strokeWidth={1.5}>
              <title>{about}</title>
            </circle>
          );
        }
        const ink = point.kind === 'own' ? inks.own : inks.other;
        return (
          <g key={point.name}>
            <rect
              x={px - 5}
              y={py - 5}
              width={10}
              height={10}
              fill={point.kind === 'own' ? ink : 'none'}
              stroke={ink}
              strokeWidth={2}
            >
              <title>{about}</title>
            </rect>
            {named.has(point) && (
              <text x={px + 8} y={py - 7} fill={inks.text} textAnchor={px > WIDTH / 2 ? 'end' : 'start'}>
                {point.name}
              </text>
            )}
          </g>
        );
      })}
    </svg>
  );
}

/** The best policies, as far as their names do not overlap; that of the job first. */
function labelled(points: readonly Point[], at: (point: Point) => [number, number]): Set<Point> {
  const candidates = points.filter(({ kind, isDominated }) => kind === 'own' || (kind === 'other' && !isDominated));
  const named = new Set<Point>();
  for (const point of candidates) {
    const [px, py] = at(point);
    const isFree = [...named].every((other) => {
      const [otherX, otherY] = at(other);
      return Math.abs(px - otherX) > LABEL.width || Math.abs(py - otherY) > LABEL.height;
    });
    if (isFree) named.add(point);
  }
  return named;
}

function rangeOf(values: readonly number[], include: number): [number, number] {
  const all = [...values, include];
  const [low, high] = [Math.min(...all), Math.max(...all)];
  return high === low ? [low, low + 1] : [low, high + (high - low) * 0.08];
}
