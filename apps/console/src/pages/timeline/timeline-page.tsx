import {
  Alert,
  Box,
  Button,
  Group,
  List,
  SegmentedControl,
  Select,
  Stack,
  Text,
  useComputedColorScheme,
} from '@mantine/core';
import { useCallback, useMemo, useRef, useState } from 'react';
import { count, duration } from '../../components/format';
import { LiveData } from '../../components/live-data';
import { saveFile } from '../../components/save-file';
import { Section } from '../../components/stat';
import { useLive } from '../../live/use-live';
import { type Explanation, useExplanation } from '../use-explanation';
import { isOpen, useRounds } from '../use-rounds';
import { useSession } from '../../session/session';
import { setParameters, useParameter, useRoute } from '../../address/route';
import { useJob } from '../../shell/scope';
import { type Phase, PHASES, type RoundHistory } from './bars';
import { HEIGHTS, type Inks, INKS, paint, type Scene } from './draw';
import { explain, formatReason } from './explain';
import { layOut, type Order, type View, wholeView } from './layout';
import { canvasPainter, svgPainter } from './painters';
import { readRound, type RoundReading } from './read-round';
import { RoundWait } from './round-wait';
import { TimelineCanvas } from './timeline-canvas';

const PHASE_NAMES: Record<Phase, string> = {
  queue: 'waits for a worker',
  'server-wait': 'waits for a server',
  prefill: 'prefill',
  decode: 'decode',
  report: 'stores and reports',
  unknown: 'times not reported',
};
/** Interval at which a running round is read again, milliseconds. */
const EVERY_MS = 20_000;

/**
 * Answers "Why is this step slow?": shows the attempts of a round over time, and reasons in words. An open round is
 * explained by what it waits for now, a completed one by its samples.
 */
export default function TimelinePage() {
  const { client } = useSession();
  const path = useJob();
  const { pool, job } = path;
  const { parameters } = useRoute();
  const rounds = useRounds();
  const given = parameters.get('round');
  const list = rounds.value;
  const round = given === null ? list?.[0] : list?.find(({ roundId }) => roundId === given);
  const last = useRef<RoundReading>(undefined);
  const history = useLive(
    round && `${pool}/${job}/${round.roundId}`,
    async (signal) => {
      last.current = await readRound(client, path, round!, last.current, signal);
      return last.current.history;
    },
    { everyMs: EVERY_MS, after: ['round.completed', 'round.settled'] },
  );
  const wait = useExplanation(round && isOpen(round) ? round.roundId : undefined);
  return (
    <Stack gap="md">
      <LiveData
        live={rounds}
        what="the rounds of the job"
        isEmpty={(all) => all.length === 0}
        empty="This job has no round yet."
      >
        {(all) => (
          <Select
            label="Round"
            w={260}
            data={all.map(({ roundId, step }) => ({ value: roundId, label: `step ${step}: ${roundId}` }))}
            value={round?.roundId ?? null}
            placeholder="choose a round"
            error={round === undefined && `The job has no summary of round ${given} (any more): it keeps the last 16.`}
            allowDeselect={false}
            onChange={(next) => setParameters({ round: next ?? undefined })}
          />
        )}
      </LiveData>
      {round && isOpen(round) && (
        <LiveData live={wait} what="what the round waits for">
          {(value) => <RoundWait explanation={value} onDone={wait.refresh} />}
        </LiveData>
      )}
      {round && (
        <LiveData live={history} what="the attempts of the round">
          {(value) => (
            <Timeline key={round.roundId} history={value} wait={wait.value} name={`${job}-${round.roundId}`} />
          )}
        </LiveData>
      )}
    </Stack>
  );
}

interface TimelineProps {
  history: RoundHistory;
  /** What the round waits for; absent if it is not open, or while this is not known. */
  wait?: Explanation;
  name: string;
}

function Timeline({ history, wait, name }: TimelineProps) {
  const [given, setOrder] = useParameter('order', 'server');
  const order: Order = given === 'end' ? 'end' : 'server';
  const [chosen, setChosen] = useState<View>();
  const inks = INKS[useComputedColorScheme('light')];
  const layout = useMemo(() => layOut(history, order), [history, order]);
  const { completedAtMs } = history;
  const reasons = useMemo(() => explain(history).map(formatReason), [history]);
  const view = useMemo(() => chosen ?? wholeView(history, layout), [chosen, history, layout]);
  const scene = useRef<Scene>(undefined);
  const onScene = useCallback((next: Scene) => (scene.current = next), []);
  const saved = completedAtMs === undefined && wait ? [wait.waitsFor, ...wait.causes.map(formatCause)] : reasons;
  return (
    <>
      {completedAtMs !== undefined && (
        <Section title={`What made it slow: ${duration(completedAtMs - history.fromMs)}`}>
          {reasons.length === 0 && <Text c="dimmed">The stream of events has no attempt of this round.</Text>}
          <List size="sm" type="ordered">
            {reasons.map((reason) => (
              <List.Item key={reason}>{reason}</List.Item>
            ))}
          </List>
        </Section>
      )}
      <Section
        title="Attempts"
        aside={
          <Group gap="xs">
            <SegmentedControl
              size="xs"
              aria-label="Rows"
              value={order}
              data={[
                { value: 'server', label: 'by server' },
                { value: 'end', label: 'by end' },
              ]}
              onChange={(next) => {
                setOrder(next);
                setChosen(undefined);
              }}
            />
            <Exports scene={scene} inks={inks} name={name} reasons={saved} />
          </Group>
        }
      >
        {!history.hasBeginning && (
          <Alert color="yellow" mb="xs">
            The stream of events does not have the beginning of this round: attempts that ended then are not shown.
          </Alert>
        )}
        {history.missingEvents > 0 && (
          <Alert color="yellow" mb="xs">
            {count(history.missingEvents)} events of the pool are missing in the stream: some attempts may not be shown.
          </Alert>
        )}
        <Legend inks={inks} history={history} />
        <TimelineCanvas {...{ history, layout, view, inks, onScene }} onView={setChosen} />
      </Section>
    </>
  );
}

function formatCause({ message, advice }: Explanation['causes'][0]): string {
  return `${message}. ${advice}`;
}

function Legend({ inks, history: { pauses } }: { inks: Inks; history: RoundHistory }) {
  const ofPool = pauses.filter(({ serverId }) => serverId === undefined);
  const items: [text: string, ink: string, height: number, width?: number][] = [
    ...PHASES.map((phase) => [PHASE_NAMES[phase], inks[phase], HEIGHTS[phase]] as [string, string, number]),
    ['ends without a sample: cut, moved, stopped', inks.mark, 1, 2],
    ...ofPool.map(
      ({ label, fromMs, toMs }) => [`${label}: ${duration(toMs - fromMs)}`, inks.pause, 1] as [string, string, number],
    ),
  ];
  if (ofPool.length < pauses.length) items.push(['engine paused for new weights', inks['server-pause'], 1]);
  return (
    <Group component="ul" gap="md" p={0} m={0} mb="xs" style={{ listStyle: 'none' }}>
      {items.map(([text, ink, height, width = 18]) => (
        <Group component="li" key={text} gap={6}>
          <Box w={width} h={14 * height} bg={ink} />
          <Text size="xs">{text}</Text>
        </Group>
      ))}
    </Group>
  );
}

interface ExportsProps {
  scene: { current: Scene | undefined };
  inks: Inks;
  name: string;
  reasons: readonly string[];
}

/** Buttons that save the visible part as a picture, or all attempts as JSON. */
function Exports({ scene, inks, name, reasons }: ExportsProps) {
  const save = (format: 'svg' | 'png' | 'json'): void => {
    const { current } = scene;
    if (current === undefined) return;
    const file = `timeline-${name}.${format}`;
    if (format === 'json')
      saveFile(file, new Blob([JSON.stringify({ reasons, ...current.history })], { type: 'application/json' }));
    if (format === 'svg') {
      const { painter, file: text } = svgPainter(inks, current.size);
      paint(current, painter);
      saveFile(file, new Blob([text()], { type: 'image/svg+xml' }));
    }
    if (format === 'png') {
      const canvas = document.createElement('canvas');
      Object.assign(canvas, { width: 2 * current.size.width, height: 2 * current.size.height });
      paint(current, canvasPainter(canvas.getContext('2d')!, inks, 2));
      canvas.toBlob((blob) => blob && saveFile(file, blob));
    }
  };
  return (
    <Button.Group>
      {(['svg', 'png', 'json'] as const).map((format) => (
        <Button key={format} size="xs" variant="default" onClick={() => save(format)}>
          {format.toUpperCase()}
        </Button>
      ))}
    </Button.Group>
  );
}
