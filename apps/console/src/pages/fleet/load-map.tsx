import { Text } from '@mantine/core';
import { useElementSize } from '@mantine/hooks';
import { type CSSProperties, type KeyboardEvent, memo, useState } from 'react';
import type { Server } from '../../live/read-servers';
import classes from './load-map.module.css';
import { computeShare, describeState, isBroken, toShownState } from './server-state';

const GAP = 2;
const MAX_ROWS = 6;
const BUSY_SHARE = 0.9;

interface LoadMapProps {
  /** In the order of the cells. */
  servers: readonly Server[];
  /** Id of the server that the page shows. */
  chosen?: string;
  onChoose(serverId: string): void;
}

/** A cell for each server, filled from below by the share of capacity in use. Arrows move between the cells. */
export function LoadMap({ servers, chosen, onChoose }: LoadMapProps) {
  const { ref: box, width } = useElementSize();
  const [focused, setFocused] = useState<string>();
  const size = computeCellSize(servers.length, width);
  const columns = Math.max(1, Math.floor((width + GAP) / (size + GAP)));
  const reachable = servers.some(({ serverId }) => serverId === focused) ? focused : servers[0]?.serverId;
  const move = (event: KeyboardEvent<HTMLDivElement>) => {
    const steps: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns };
    const cells = [...event.currentTarget.children] as HTMLElement[];
    const at = cells.indexOf(event.target as HTMLElement);
    const to =
      event.key === 'Home' ? 0 : event.key === 'End' ? cells.length - 1 : at + (steps[event.key] ?? Number.NaN);
    if (cells[to] === undefined) return;
    event.preventDefault();
    cells[to].focus();
  };
  return (
    <>
      <div
        ref={box}
        className={classes.map}
        style={{ '--cell': `${size}px` } as CSSProperties}
        role="group"
        aria-label={`Load of ${servers.length} servers, those that need help first`}
        onKeyDown={move}
        onFocus={(event) => setFocused((event.target as HTMLElement).dataset.server)}
      >
        {servers.map((server) => (
          <Cell
            key={server.serverId}
            serverId={server.serverId}
            state={toShownState(server)}
            mark={describeState(server).mark}
            loadPercent={Math.round(computeShare(server) * 100)}
            isBroken={isBroken(server)}
            isBusy={computeShare(server) > BUSY_SHARE}
            isChosen={server.serverId === chosen}
            isReachable={server.serverId === reachable}
            onChoose={onChoose}
          />
        ))}
      </div>
      <Text size="xs" c="dimmed" mt={4}>
        A cell for each server, filled by its requests in flight. Orange: above 90 % of its capacity. × failed, ?
        suspect, ! quarantined, hung or with other weights, … pending, ↓ draining, – cordoned. A cell leads to its
        server.
      </Text>
    </>
  );
}

interface CellProps {
  serverId: string;
  state: string;
  mark: string;
  loadPercent: number;
  isBroken: boolean;
  isBusy: boolean;
  isChosen: boolean;
  /** The cell that Tab reaches; arrows reach the others. */
  isReachable: boolean;
  onChoose(serverId: string): void;
}

/** Only cells with a change are drawn again, since a pool may have a thousand. */
const Cell = memo(function Cell(props: CellProps) {
  const { serverId, state, mark, loadPercent, isBusy, isChosen, isReachable, onChoose } = props;
  const text = `${serverId}: ${state}, ${loadPercent} % of its capacity`;
  return (
    <button
      type="button"
      className={classes.cell}
      style={{ '--load': `${loadPercent}%` } as CSSProperties}
      data-server={serverId}
      data-state={state}
      data-busy={isBusy || undefined}
      data-broken={props.isBroken || undefined}
      aria-label={text}
      aria-pressed={isChosen}
      title={text}
      tabIndex={isReachable ? 0 : -1}
      onClick={() => onChoose(serverId)}
    >
      {mark}
    </button>
  );
});

/** Largest size of cells at which all servers fit into a few rows, pixels. A finger needs 24. */
function computeCellSize(servers: number, width: number): number {
  for (let size = 40; size > 12; size -= 2) {
    if (Math.ceil(servers / Math.max(1, Math.floor((width + GAP) / (size + GAP)))) <= MAX_ROWS) return size;
  }
  return 12;
}
