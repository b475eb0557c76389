import { Box, Group, Text, Tooltip } from '@mantine/core';
import { useElementSize } from '@mantine/hooks';
import { type MouseEvent, useEffect, useRef, useState } from 'react';
import { percent } from '../../components/format';
import { type Palette, usePalette } from '../../components/palette';
import type { Server } from '../../live/read-servers';

const GAP = 2;
const MAX_ROWS = 6;

/** Draws a cell for each server, filled from below by the share of capacity in use. */
export function LoadMap({ servers }: { servers: readonly Server[] }) {
  const { ref: box, width } = useElementSize();
  const canvas = useRef<HTMLCanvasElement>(null);
  const palette = usePalette();
  const [pointed, setPointed] = useState<Server>();
  const cell = cellSize(servers.length, width);
  const columns = Math.max(1, Math.floor((width + GAP) / (cell + GAP)));
  const height = Math.ceil(servers.length / columns) * (cell + GAP);
  useEffect(() => {
    const context = canvas.current?.getContext('2d');
    if (!context) return;
    const ratio = devicePixelRatio;
    canvas.current!.width = width * ratio;
    canvas.current!.height = height * ratio;
    context.scale(ratio, ratio);
    for (const [index, server] of servers.entries()) {
      const x = (index % columns) * (cell + GAP);
      const y = Math.floor(index / columns) * (cell + GAP);
      context.fillStyle = palette.track;
      context.fillRect(x, y, cell, cell);
      const filled = Math.ceil(cell * computeLoad(server));
      context.fillStyle = getColor(server, palette);
      context.fillRect(x, y + cell - filled, cell, filled);
    }
  }, [servers, cell, columns, width, height, palette]);
  const point = (event: MouseEvent) => {
    const { left, top } = canvas.current!.getBoundingClientRect();
    const column = Math.floor((event.clientX - left) / (cell + GAP));
    const row = Math.floor((event.clientY - top) / (cell + GAP));
    setPointed(column < columns ? servers[row * columns + column] : undefined);
  };
  return (
    <Box ref={box}>
      <Tooltip.Floating label={pointed && formatLoad(pointed)} disabled={pointed === undefined}>
        <canvas
          ref={canvas}
          style={{ width: '100%', height, display: 'block' }}
          role="img"
          aria-label={`Load of ${servers.length} servers; the table below has the numbers.`}
          onMouseMove={point}
          onMouseLeave={() => setPointed(undefined)}
        />
      </Tooltip.Floating>
      <Group gap="md" mt={4}>
        <Text size="xs" c="dimmed">
          One cell for each server, filled by its requests in flight. Orange: above 90 % of its capacity. Red: failed,
          suspect or quarantined. Gray: takes no requests.
        </Text>
      </Group>
    </Box>
  );
}

/** Largest size of cells at which all servers fit into a few rows. */
function cellSize(servers: number, width: number): number {
  for (let cell = 40; cell > 8; cell -= 2) {
    if (Math.ceil(servers / Math.max(1, Math.floor((width + GAP) / (cell + GAP)))) <= MAX_ROWS) return cell;
  }
  return 8;
}

function computeLoad({ state, inflight, capacity }: Server): number {
  if (BROKEN.has(state)) return 1;
  return Math.min(1, inflight / Math.max(1, capacity));
}

const BROKEN = new Set<Server['state']>(['failed', 'suspect', 'quarantined']);

function getColor(server: Server, palette: Palette): string {
  if (BROKEN.has(server.state)) return palette.bad;
  if (server.state !== 'ready') return palette.text;
  return computeLoad(server) > 0.9 ? palette.warn : palette.bar;
}

function formatLoad(server: Server): string {
  const { serverId, state, inflight, capacity } = server;
  return `${serverId}: ${state}, ${inflight} of ${capacity} (${percent(inflight / Math.max(1, capacity))})`;
}
