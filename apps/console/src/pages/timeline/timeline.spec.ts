import type { Schemas } from '@broomwagon/admin-client';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { buildHistory } from './bars';
import { barAt, paint, type Painter } from './draw';
import { explain, onServer } from './explain';
import { layOut, pan, wholeView, zoom } from './layout';
import { svgPainter } from './painters';

type PoolEvent = Schemas['PoolEvent'];

let sequence = 0;
function attempt(fields: { requestId: string; claimedAtMs: number; endedMs: number; serverId?: string }): PoolEvent {
  const { requestId, claimedAtMs, endedMs, serverId = 's1' } = fields;
  return {
    type: 'request.finished',
    pool: 'p',
    sequence: ++sequence,
    atMs: claimedAtMs + endedMs + 5,
    requestId,
    roundId: 'r1',
    attempt: '1-a',
    queuedAtMs: claimedAtMs - 10,
    claimedAtMs,
    serverId,
    attemptTokens: endedMs,
    tokens: endedMs,
    finishReason: 'stop',
    run: { serverId, weightVersion: 0, leasedMs: 1, firstTokenMs: Math.min(3, endedMs), endedMs },
  };
}

const attempts = fc.array(
  fc.record({
    requestId: fc.nat({ max: 40 }).map((id) => `job/g${id}/0`),
    claimedAtMs: fc.integer({ min: 1_010, max: 9_000 }),
    endedMs: fc.integer({ min: 4, max: 3_000 }),
    serverId: fc.constantFrom('s1', 's2', 's10'),
  }),
  { minLength: 1, maxLength: 60 },
);

describe('a timeline', () => {
  it('divides each attempt into phases without gaps', () => {
    const { bars } = buildHistory(
      { openedAtMs: 1_000 },
      [attempt({ requestId: 'job/g/0', claimedAtMs: 1_100, endedMs: 50 })],
      [],
      2_000,
    );
    expect(bars[0]!.phases).toEqual([
      { phase: 'queue', fromMs: 1_090, toMs: 1_100 },
      { phase: 'server-wait', fromMs: 1_100, toMs: 1_101 },
      { phase: 'prefill', fromMs: 1_101, toMs: 1_103 },
      { phase: 'decode', fromMs: 1_103, toMs: 1_150 },
      { phase: 'report', fromMs: 1_150, toMs: 1_155 },
    ]);
  });

  it('shows an attempt whose worker has expired, a running attempt, and a change of weights that still runs', () => {
    const fields = { pool: 'p', atMs: 1_500, sequence: 1 };
    const events: PoolEvent[] = [
      {
        ...fields,
        type: 'attempt.ended',
        requestId: 'job/g/0',
        roundId: 'r1',
        attempt: '1-a',
        claimedAtMs: 1_200,
        attemptTokens: 0,
        outcome: 'returned',
      },
      { ...fields, type: 'weights.begun', syncId: 'y', version: 2, fromVersion: 1, mode: 'abort' },
    ];
    const running = {
      requestId: 'job/g/0',
      state: 'running' as const,
      attempt: '2-a',
      failures: 0,
      tokenCount: 7,
      ageMs: 300,
      serverId: 's2',
    };
    const { bars, pauses } = buildHistory({ openedAtMs: 1_000 }, events, [running], 2_000);
    expect(bars.map(({ outcome, phases }) => [outcome, phases.map(({ phase }) => phase)])).toEqual([
      ['returned', ['unknown']],
      ['running', ['decode']],
    ]);
    // The stream has removed the event that opened the round.
    expect(buildHistory({ openedAtMs: 1_000 }, events, [], 2_000).hasBeginning).toBe(false);
    expect(pauses).toEqual([{ label: 'weights 1 → 2, abort', fromMs: 1_500, toMs: 2_000 }]);
  });

  it('draws the pause of an engine in the rows of its server, also a pause that started before the round', () => {
    const fields = { pool: 'p', sequence: 1, syncId: 'y' };
    const events: PoolEvent[] = [
      attempt({ requestId: 'job/g/0', claimedAtMs: 1_000, endedMs: 1_000, serverId: 's1' }),
      attempt({ requestId: 'job/h/0', claimedAtMs: 1_000, endedMs: 1_000, serverId: 's2' }),
      { ...fields, type: 'server.resumed', serverId: 's1', atMs: 1_100 },
      { ...fields, type: 'weights.committed', version: 2, reason: 'asked', atMs: 1_200 },
      { ...fields, type: 'server.paused', syncId: 'z', serverId: 's2', atMs: 1_500 },
    ];
    const history = buildHistory({ openedAtMs: 1_000, completedAtMs: 2_000 }, events, [], 2_000);
    const layout = layOut(history, 'server');
    const size = { width: 1_104, height: 224 };
    const drawn: number[][] = [];
    let ink = '';
    const painter: Painter = {
      use: (next) => (ink = next),
      rect: (...numbers) => ink === 'server-pause' && drawn.push(numbers),
      text: () => undefined,
    };
    paint({ history, layout, size, view: { fromMs: 1_000, toMs: 2_000, fromRow: 0, toRow: 2 } }, painter);
    expect(drawn).toEqual([
      [104, 24, 100, 100],
      [604, 124, 500, 100],
    ]);
    const { share, text } = explain(history).find(({ title }) => title === 'Weights')!;
    // Engines are paused for 300 ms of 1,000 on average, the pool for 200.
    expect([share, text]).toEqual([
      0.3,
      '1 change of weights took 0.2 s; in that time no request was claimed. ' +
        'The engines of 2 servers were paused for 0.3 s each.',
    ]);
  });

  it('places attempts of a server in rows without overlap, and shows each attempt once by end', () => {
    fc.assert(
      fc.property(attempts, (list) => {
        const history = buildHistory({ openedAtMs: 1_000 }, list.map(attempt), [], 20_000);
        const { bars, rows, lanes } = layOut(history, 'server');
        expect(bars).toHaveLength(list.length);
        expect(lanes.reduce((sum, lane) => sum + lane.rows, 0)).toBe(rows);
        for (let row = 0; row < rows; row++) {
          const spans = bars.filter((one) => one.row === row).map(({ bar }) => onServer(bar)!);
          spans.sort((one, other) => one.fromMs - other.fromMs);
          for (const [index, span] of spans.slice(1).entries()) {
            expect(span.fromMs).toBeGreaterThanOrEqual(spans[index]!.toMs);
          }
        }
        const byEnd = layOut(history, 'end');
        expect(byEnd.bars).toHaveLength(list.length);
        expect(byEnd.rows).toBe(new Set(list.map(({ requestId }) => requestId)).size);
        const ends = history.bars.map(({ toMs }) => toMs);
        const first = byEnd.bars.filter(({ row }) => row === 0).map(({ bar }) => bar.toMs);
        expect(Math.max(...first)).toBe(Math.max(...ends));
      }),
    );
  });

  it('names the last samples, idle slots and queues with their numbers', () => {
    const quick = Array.from({ length: 9 }, (_, index) =>
      attempt({ requestId: `job/g${index}/0`, claimedAtMs: 1_010, endedMs: 85 }),
    );
    const slow = attempt({ requestId: 'job/slow/0', claimedAtMs: 1_010, endedMs: 985 });
    const history = buildHistory({ openedAtMs: 1_000, completedAtMs: 2_000 }, [...quick, slow], [], 3_000);
    const reasons = explain(history);
    expect(reasons.map(({ title, share }) => [title, Number(share.toFixed(2))])).toEqual([
      ['The last tenth of the samples', 0.9],
      // Ten requests at once; nine of them 84 ms of 1,000, one 984 ms.
      ['Idle slots', 0.83],
      ['Queues', 0.01],
    ]);
    expect(reasons[0]!.text).toContain('The last of 10 samples took 0.9 s. The very last, job/slow/0 on s1');
    expect(reasons[1]!.text).toContain('10 requests at once at most');
  });

  it('explains no open round by its samples that have finished', () => {
    const finished = attempt({ requestId: 'job/g/0', claimedAtMs: 1_010, endedMs: 85 });
    expect(explain(buildHistory({ openedAtMs: 1_000 }, [finished], [], 3_000))).toEqual([]);
  });

  it('has no phase outside of its attempt when the clock of Redis went back', () => {
    const late = { ...attempt({ requestId: 'job/g/0', claimedAtMs: 5_000, endedMs: 50 }), atMs: 3_000 };
    const [bar] = buildHistory({ openedAtMs: 1_000 }, [late], [], 6_000).bars;
    expect(bar).toMatchObject({ fromMs: 3_000, toMs: 3_000, phases: [] });
  });

  it('marks an attempt that was cut in the millisecond in which it began', () => {
    const began = attempt({ requestId: 'job/g/0', claimedAtMs: 1_500, endedMs: 0 });
    const cut = { ...began, type: 'attempt.ended', atMs: 1_500, queuedAtMs: 1_500, outcome: 'cut' } as PoolEvent;
    const history = buildHistory({ openedAtMs: 1_000, completedAtMs: 2_000 }, [cut], [], 2_000);
    const marks: number[] = [];
    let ink = '';
    const painter: Painter = {
      use: (next) => (ink = next),
      rect: (x) => ink === 'mark' && marks.push(x),
      text: () => undefined,
    };
    const view = { fromMs: 1_000, toMs: 2_000, fromRow: 0, toRow: 1 };
    paint({ history, layout: layOut(history, 'end'), view, size: { width: 1_104, height: 124 } }, painter);
    expect(marks).toEqual([603]);
  });

  it('finds the attempt that is drawn at a point', () => {
    const events = [
      attempt({ requestId: 'job/first/0', claimedAtMs: 1_000, endedMs: 500 }),
      // The attempt waits for its server while the first one runs there, and starts while that end is reported.
      { ...attempt({ requestId: 'job/next/0', claimedAtMs: 1_501, endedMs: 500 }), queuedAtMs: 1_010 } as PoolEvent,
    ];
    const history = buildHistory({ openedAtMs: 1_000 }, events, [], 2_100);
    const layout = layOut(history, 'server');
    expect(layout.rows).toBe(1);
    const view = { fromMs: 1_000, toMs: 2_000, fromRow: 0, toRow: 1 };
    const scene = { history, layout, view, size: { width: 1_104, height: 124 } };
    const at = (atMs: number) => barAt(scene, { x: 104 + atMs - 1_000, y: 60 })?.requestId;
    expect([at(1_400), at(1_501.5), at(1_504)]).toEqual(['job/first/0', undefined, 'job/next/0']);
  });

  it('labels ticks with different times at every zoom', () => {
    const history = buildHistory({ openedAtMs: 1_000, completedAtMs: 90_001_000 }, [], [], 90_001_000);
    const drawLabels = (fromMs: number, spanMs: number): string[] => {
      const texts: string[] = [];
      const painter: Painter = {
        use: () => undefined,
        rect: () => undefined,
        text: (_x, y, text) => y === 12 && texts.push(text),
      };
      const layout = { bars: [], lanes: [], rows: 1 };
      const view = { fromMs, toMs: fromMs + spanMs, fromRow: 0, toRow: 1 };
      paint({ history, layout, view, size: { width: 1_104, height: 124 } }, painter);
      return texts;
    };
    for (const spanMs of [8, 90, 800, 9_000, 79_000, 81_000, 1e6, 1e7, 9e7, 9e8]) {
      const labels = drawLabels(61_000, spanMs);
      expect(labels.length, String(spanMs)).toBeGreaterThan(2);
      expect(new Set(labels).size, String(spanMs)).toBe(labels.length);
    }
    const minutes = '0 s, 0:10:00, 0:20:00, 0:30:00, 0:40:00, 0:50:00, 1:00:00';
    expect(drawLabels(1_000, 4_000_000).join(', ')).toBe(minutes);
    expect(drawLabels(61_000, 800).slice(0, 2)).toEqual(['0:01:00.0', '0:01:00.1']);
  });

  it('zooms around a point and moves', () => {
    const history = buildHistory({ openedAtMs: 0, completedAtMs: 1_000 }, [], [], 1_000);
    const view = { ...wholeView(history, { bars: [], lanes: [], rows: 10 }), fromMs: 0, toMs: 1_000 };
    expect(zoom(view, 0.5, { x: 0.25, y: 0 }, { x: true, y: false })).toMatchObject({
      fromMs: 125,
      toMs: 625,
      toRow: 10,
    });
    expect(pan(view, 0.1, -0.5)).toEqual({ fromMs: 100, toMs: 1_100, fromRow: -5, toRow: 5 });
  });

  it('draws only the visible part, and writes names of requests as text of the SVG', () => {
    const events = [
      attempt({ requestId: 'job/<b>&/0', claimedAtMs: 1_100, endedMs: 500 }),
      attempt({ requestId: 'job/late/0', claimedAtMs: 5_000, endedMs: 500 }),
    ];
    const history = buildHistory({ openedAtMs: 1_000 }, events, [], 6_000);
    const layout = layOut(history, 'end');
    const size = { width: 1_000, height: 200 };
    const rectangles = (toMs: number): number => {
      let [drawn, ink] = [0, ''];
      const painter: Painter = {
        use: (next) => (ink = next),
        rect: () => (drawn += ink === 'decode' ? 1 : 0),
        text: () => undefined,
      };
      paint({ history, layout, size, view: { fromMs: 1_000, toMs, fromRow: 0, toRow: 2 } }, painter);
      return drawn;
    };
    expect([rectangles(6_000), rectangles(2_000), rectangles(1_050)]).toEqual([2, 1, 0]);
    const { painter, file } = svgPainter({} as never, size);
    paint({ history, layout, size, view: wholeView(history, layout) }, painter);
    expect(file()).toContain('job/&lt;b&gt;&amp;/0');
    expect(file()).not.toContain('<b>');
  });
});
