import { Box, Text } from '@mantine/core';
import { useElementSize } from '@mantine/hooks';
import { type KeyboardEvent, type PointerEvent, useEffect, useMemo, useRef, useState } from 'react';
import { count, duration } from '../../components/format';
import type { Bar, RoundHistory } from './bars';
import { AXIS, barAt, GUTTER, type Inks, paint, type Scene } from './draw';
import { type Layout, pan, type View, zoom } from './layout';
import { canvasPainter } from './painters';

const HEIGHT = 520;
const ZOOM_STEP = 1.25;
const PAN_STEP = 0.1;

interface TimelineCanvasProps {
  history: RoundHistory;
  layout: Layout;
  view: View;
  inks: Inks;
  onView(view: View | undefined): void;
  onScene(scene: Scene): void;
}

/** Draws a round. The wheel zooms time, with Shift rows; a drag or an arrow key moves; the key 0 shows all. */
export function TimelineCanvas({ history, layout, view, inks, onView, onScene }: TimelineCanvasProps) {
  const { ref: box, width } = useElementSize();
  const canvas = useRef<HTMLCanvasElement>(null);
  const [hovered, setHovered] = useState<{ bar: Bar; x: number; y: number }>();
  const drag = useRef<{ x: number; y: number; view: View }>(undefined);
  const scene = useMemo(
    () => ({ history, layout, view, size: { width: Math.max(GUTTER + 1, width), height: HEIGHT } }),
    [history, layout, view, width],
  );
  useEffect(() => {
    onScene(scene);
    const frame = requestAnimationFrame(() => draw(canvas.current, scene, inks));
    return () => cancelAnimationFrame(frame);
  }, [scene, inks, onScene]);

  useEffect(() => {
    const element = canvas.current;
    // React listens to the wheel passively and could not keep the page from scrolling, so this is a listener.
    const onWheel = (event: WheelEvent) => {
      event.preventDefault();
      const factor = event.deltaY + event.deltaX > 0 ? ZOOM_STEP : 1 / ZOOM_STEP;
      const at = toPosition(scene, event.offsetX, event.offsetY);
      onView(zoom(scene.view, factor, at, { x: !event.shiftKey, y: event.shiftKey }));
    };
    element?.addEventListener('wheel', onWheel, { passive: false });
    return () => element?.removeEventListener('wheel', onWheel);
  }, [scene, onView]);

  const onPointerMove = ({ nativeEvent: { offsetX: x, offsetY: y } }: PointerEvent) => {
    const start = drag.current;
    if (start === undefined) {
      const bar = barAt(scene, { x, y });
      setHovered(bar && { bar, x, y });
      return;
    }
    const { size } = scene;
    onView(pan(start.view, (start.x - x) / (size.width - GUTTER), (start.y - y) / (size.height - AXIS)));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const next = viewOfKey(event, view);
    if (next === null) return;
    event.preventDefault();
    onView(next);
  };

  return (
    <Box ref={box} pos="relative">
      <canvas
        ref={canvas}
        role="img"
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a keyboard moves and zooms it
        tabIndex={0}
        aria-label={`${count(layout.bars.length)} attempts over time. Arrow keys move, plus and minus zoom, 0 shows all.`}
        data-bars={layout.bars.length}
        style={{ width: '100%', height: HEIGHT, display: 'block', cursor: 'grab', touchAction: 'none' }}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          drag.current = { x: event.nativeEvent.offsetX, y: event.nativeEvent.offsetY, view };
          setHovered(undefined);
        }}
        onPointerMove={onPointerMove}
        onPointerUp={() => (drag.current = undefined)}
        onPointerLeave={() => setHovered(undefined)}
        onDoubleClick={() => onView(undefined)}
        onKeyDown={onKeyDown}
      />
      {hovered && <Details {...hovered} openedAtMs={history.fromMs} isRight={hovered.x > width / 2} />}
    </Box>
  );
}

function Details({
  bar,
  x,
  y,
  openedAtMs,
  isRight,
}: {
  bar: Bar;
  x: number;
  y: number;
  openedAtMs: number;
  isRight: boolean;
}) {
  const side = isRight ? { right: `calc(100% - ${x - 12}px)` } : { left: x + 12 };
  const rows = [
    `${bar.outcome}, attempt ${bar.attempt.split('-')[0]}, on ${bar.serverId ?? 'no server'}`,
    `${count(bar.tokens)} tokens${bar.weightVersion === undefined ? '' : `, weights ${bar.weightVersion}`}`,
    `from ${duration(bar.fromMs - openedAtMs)} to ${duration(bar.toMs - openedAtMs)}`,
    ...bar.phases.map(({ phase, fromMs, toMs }) => `${phase}: ${duration(toMs - fromMs)}`),
  ];
  return (
    <Box
      role="tooltip"
      p="xs"
      pos="absolute"
      style={{
        top: Math.min(y, HEIGHT - 150),
        ...side,
        background: 'var(--surface)',
        border: '1px solid var(--line)',
        pointerEvents: 'none',
      }}
    >
      <Text size="sm" fw={600}>
        {bar.requestId}
      </Text>
      {rows.map((row) => (
        <Text key={row} size="xs">
          {row}
        </Text>
      ))}
    </Box>
  );
}

/** Draws a scene. The performance timeline of the browser has the duration. */
function draw(canvas: HTMLCanvasElement | null, scene: Scene, inks: Inks): void {
  const context = canvas?.getContext('2d');
  if (canvas === null || !context) return;
  const start = performance.now();
  const ratio = devicePixelRatio;
  const [width, height] = [Math.round(scene.size.width * ratio), Math.round(scene.size.height * ratio)];
  // Setting a size clears the canvas, even if the size is the same.
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  paint(scene, canvasPainter(context, inks, ratio));
  performance.measure('timeline-redraw', { start });
}

function toPosition({ size }: Scene, x: number, y: number): { x: number; y: number } {
  return { x: Math.max(0, (x - GUTTER) / (size.width - GUTTER)), y: Math.max(0, (y - AXIS) / (size.height - AXIS)) };
}

/** The view after a key; undefined: the whole view; null: the key has no effect. */
function viewOfKey({ key, shiftKey }: KeyboardEvent, view: View): View | undefined | null {
  const center = { x: 0.5, y: 0.5 };
  const axes = { x: !shiftKey, y: shiftKey };
  if (key === '0' || key === 'Home') return undefined;
  if (key === '+' || key === '=' || key === '*') return zoom(view, 1 / ZOOM_STEP, center, axes);
  if (key === '-' || key === '_') return zoom(view, ZOOM_STEP, center, axes);
  if (key === 'ArrowLeft') return pan(view, -PAN_STEP, 0);
  if (key === 'ArrowRight') return pan(view, PAN_STEP, 0);
  if (key === 'ArrowUp') return pan(view, 0, -PAN_STEP);
  if (key === 'ArrowDown') return pan(view, 0, PAN_STEP);
  return null;
}
