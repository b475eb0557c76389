import { useId, type Ref } from 'react';
import { usePalette } from '../../components/palette';
import type { Point } from './points';

const WIDTH = 440;
const HEIGHT = 300;
const MARGIN = { left: 58, right: 16, top: 12, bottom: 40 };
const TICKS = 4;
const SQUARE = 10;
/** Geometry of names, pixels: height, width of a character, and offset from the middle of a point. */
const LABEL = { height: 11, character: 6, x: 8, y: -7 };

export interface Axis {
  label: string;
  of(point: Point): number;
  format(value: number): string;
  /** A value that the axis must include. */
  include: number;
}

interface ScatterProps {
  title: string;
  points: readonly Point[];
  x: Axis;
  y: Axis;
  ref: Ref<SVGSVGElement>;
}

/** A drawing of points by two of their costs. Steps are circles, policies are squares; the job's policy is filled. */
export function Scatter({ title, points, x, y, ref }: ScatterProps) {
  const id = useId();
  // Colors are attributes, not styles, so that a saved drawing keeps its colors.
  const palette = usePalette();
  const [left, right] = computeRange(points.map(x.of), x.include);
  const [low, high] = computeRange(points.map(y.of), y.include);
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
          <g key={part} fill={palette.text}>
            <line x1={atX(xValue)} x2={atX(xValue)} y1={MARGIN.top} y2={HEIGHT - MARGIN.bottom} stroke={palette.grid} />
            <line x1={MARGIN.left} x2={WIDTH - MARGIN.right} y1={atY(yValue)} y2={atY(yValue)} stroke={palette.grid} />
            <text x={atX(xValue)} y={HEIGHT - MARGIN.bottom + 14} textAnchor="middle">
              {x.format(xValue)}
            </text>
            <text x={MARGIN.left - 6} y={atY(yValue) + 4} textAnchor="end">
              {y.format(yValue)}
            </text>
          </g>
        );
      })}
      <text x={(MARGIN.left + WIDTH - MARGIN.right) / 2} y={HEIGHT - 8} textAnchor="middle" fill={palette.text}>
        {x.label}
      </text>
      <text transform={`translate(12 ${HEIGHT / 2}) rotate(-90)`} textAnchor="middle" fill={palette.text}>
        {y.label}
      </text>
      {points.map((point) => {
        const [px, py] = [atX(x.of(point)), atY(y.of(point))];
        const about = `${point.name}: ${x.label} ${x.format(x.of(point))}, ${y.label} ${y.format(y.of(point))}`;
        if (point.kind === 'step') {
          return (
            <circle key={point.name} cx={px} cy={py} r={4} fill="none" stroke={palette.text} strokeWidth={1.5}>
              <title>{about}</title>
            </circle>
          );
        }
        const ink = point.kind === 'own' ? palette.bar : palette.warn;
        return (
          <g key={point.name}>
            <rect
              x={px - SQUARE / 2}
              y={py - SQUARE / 2}
              width={SQUARE}
              height={SQUARE}
              fill={point.kind === 'own' ? ink : 'none'}
              stroke={ink}
              strokeWidth={2}
            >
              <title>{about}</title>
            </rect>
            {named.has(point) && (
              <text
                x={px + LABEL.x}
                y={py + LABEL.y}
                fill={palette.text}
                textAnchor={isInRightHalf(px) ? 'end' : 'start'}
              >
                {point.name}
              </text>
            )}
          </g>
        );
      })}
    </svg>
  );
}

interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** Whether a point is in the right half of the drawing, so that its name stands on the left side. */
function isInRightHalf(px: number): boolean {
  return px > WIDTH / 2;
}

/** Policies that show their names: the job's policy and policies without a better one, unless names would overlap. */
function labelled(points: readonly Point[], at: (point: Point) => [number, number]): Set<Point> {
  const isOwn = ({ kind }: Point): number => Number(kind === 'own');
  const policies = points.filter(({ kind }) => kind !== 'step').sort((one, other) => isOwn(other) - isOwn(one));
  const taken = new Map<Point, Box[]>(
    policies.map((point) => {
      const [px, py] = at(point);
      return [point, [{ left: px - SQUARE / 2, top: py - SQUARE / 2, width: SQUARE, height: SQUARE }]];
    }),
  );
  const named = new Set<Point>();
  for (const point of policies.filter(({ isDominated, kind }) => kind === 'own' || !isDominated)) {
    const [px, py] = at(point);
    const width = point.name.length * LABEL.character;
    const left = px + LABEL.x - (isInRightHalf(px) ? width : 0);
    const box = { left, top: py + LABEL.y - LABEL.height, width, height: LABEL.height };
    const others = policies.filter((one) => one !== point).flatMap((one) => taken.get(one)!);
    if (others.some((other) => overlap(box, other))) continue;
    taken.get(point)!.push(box);
    named.add(point);
  }
  return named;
}

function overlap(one: Box, other: Box): boolean {
  const isBeside = one.left > other.left + other.width || other.left > one.left + one.width;
  const isAbove = one.top > other.top + other.height || other.top > one.top + one.height;
  return !isBeside && !isAbove;
}

function computeRange(values: readonly number[], include: number): [number, number] {
  const all = [...values, include];
  const [low, high] = [Math.min(...all), Math.max(...all)];
  return high === low ? [low, low + 1] : [low, high + (high - low) * 0.08];
}
