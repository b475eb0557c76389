import type { OpenRound, OverviewAlarm, RoundStatus } from '@broomwagon/contracts';
import { findAlarms, NEEDED_APPS, SLOW_FACTOR, sortAlarms } from '../overview-alarms';
import { findOfRequests } from './request-causes';
import { computeAge, isOpen, type RoundSnapshot } from './round-snapshot';
import { findOfServers } from './server-causes';

/** Services whose problems delay a round. */
const ROUND_APPS = new Set([...NEEDED_APPS, 'worker']);
/** Duration from which a change of weights counts as stuck, milliseconds. */
const LONG_CHANGE_MS = 60_000;

/** Finds the causes of delay of an open round, the worst first. Each has a runbook of docs/operations/alerts.md. */
export function findCauses(snapshot: RoundSnapshot): OverviewAlarm[] {
  const { numbers, servers, round } = snapshot;
  if (round !== undefined && !isOpen(round)) return [];
  const services = numbers.services?.filter(({ app }) => ROUND_APPS.has(app));
  const rounds = round && [toOpenRound(snapshot, round)];
  const ofPool = findAlarms({ ...numbers, services, rounds }, servers);
  if (round === undefined) return ofPool;
  const causes = sortAlarms([
    ...ofPool,
    ...findOfServers(snapshot),
    ...findOfWeights(snapshot),
    ...findOfTrainer(round),
    ...findOfRequests(snapshot, round),
    ...findOfAttempts(round),
  ]);
  return causes.length > 0 ? causes : findOfLength(snapshot, round);
}

/** The round without the median, so that it raises no alarm that leads to this explanation. */
function toOpenRound({ job, numbers }: RoundSnapshot, round: RoundStatus): OpenRound {
  return { ...round, job, ageMs: computeAge(round, numbers.atMs) };
}

function findOfWeights({ sync, numbers: { atMs } }: RoundSnapshot): OverviewAlarm[] {
  if (sync?.state !== 'begun') return [];
  const { version, fromVersion, mode, servers, confirmedServers, startedAtMs, deadlineAtMs } = sync;
  const deadline = new Date(deadlineAtMs).toISOString();
  return [
    {
      runbook: 'BroomwagonNoProgress',
      severity: atMs - startedAtMs > LONG_CHANGE_MS ? 'critical' : 'warning',
      message:
        `The weights change from version ${fromVersion} to ${version} (mode ${mode}), so no request is claimed: ` +
        `${confirmedServers} of ${servers} servers have version ${version}`,
      advice:
        `The trainer ends the change (weights.commit, weights.rollback). At ${deadline} the pool continues with ` +
        `version ${fromVersion} by itself.`,
      sinceMs: startedAtMs,
    },
  ];
}

/** Causes that the trainer has to end. */
function findOfTrainer(round: RoundStatus): OverviewAlarm[] {
  const { roundGroups, failedGroups, droppedGroups, unrewardedGroups = 0, openedAtMs } = round;
  const causes: OverviewAlarm[] = [];
  const lost = failedGroups + droppedGroups;
  const missing = Math.max(round.shortfallGroups, round.newGroups + round.takenGroups - roundGroups);
  if (missing > 0) {
    const why = lost === 0 ? '' : `; ${lost} groups failed or were dropped`;
    const last = round.lastFailures?.at(-1);
    causes.push({
      runbook: failedGroups > 0 ? 'BroomwagonEnginesFailing' : 'BroomwagonNoProgress',
      severity: roundGroups === 0 ? 'critical' : 'warning',
      message: `The trainer has not submitted ${missing} groups of the round${why}`,
      advice:
        last === undefined
          ? 'Check that the trainer runs. Start it again, or cancel the round.'
          : `The trainer submits other groups. The last failure is ${last.reason}: ${last.message ?? 'no text'}`,
      ...(roundGroups === 0 ? { sinceMs: openedAtMs } : {}),
    });
  }
  if (unrewardedGroups > 0) {
    causes.push({
      runbook: 'BroomwagonNoProgress',
      severity: 'warning',
      message: `The trainer has not reported the rewards of ${unrewardedGroups} accepted groups`,
      advice: 'Check that the trainer and its reward function run; round.reward reports the rewards.',
    });
  }
  return causes;
}

/** Reasons of returned attempts, with the runbook and the advice for each set of reasons. */
const RETURNS: readonly { reasons: (keyof RoundStatus['returnedAttempts'])[]; runbook: string; advice: string }[] = [
  {
    reasons: ['engine-error', 'engine-rejected', 'engine-abort', 'no-server'],
    runbook: 'BroomwagonEnginesFailing',
    advice: 'The logs of the workers have the reasons. Cordon an engine that causes them.',
  },
  {
    reasons: ['worker-lost'],
    runbook: 'BroomwagonWorkersExpired',
    advice: 'The requests run again with their saved tokens. Check that all workers are live.',
  },
  {
    reasons: ['payload', 'payload-full'],
    runbook: 'BroomwagonNotReady',
    advice: 'Check the payload store: its space, and that all services reach it.',
  },
  { reasons: ['internal'], runbook: 'BroomwagonInternalErrors', advice: 'Report the defect with the log.' },
];

/** Attempts of this round that have ended without their samples, and run again. */
function findOfAttempts({ returnedAttempts }: RoundStatus): OverviewAlarm[] {
  return RETURNS.flatMap(({ reasons, runbook, advice }): OverviewAlarm[] => {
    const found = reasons.flatMap((reason) => {
      const attempts = returnedAttempts[reason];
      return attempts === undefined ? [] : [{ reason, attempts }];
    });
    if (found.length === 0) return [];
    const sum = found.reduce((total, { attempts }) => total + attempts, 0);
    const named = found.map(({ reason, attempts }) => `${reason} ${attempts}`).join(', ');
    const message = `${sum} ${sum === 1 ? 'attempt' : 'attempts'} of this round ended without a sample (${named})`;
    return [{ runbook, severity: 'warning', message, advice }];
  });
}

/** A slow round of which nothing is wrong: its responses are long. */
function findOfLength({ medianMs, numbers: { atMs } }: RoundSnapshot, round: RoundStatus): OverviewAlarm[] {
  const ageMs = computeAge(round, atMs);
  if (medianMs === undefined || ageMs <= SLOW_FACTOR * medianMs) return [];
  const times = (ageMs / medianMs).toFixed(1);
  return [
    {
      runbook: 'BroomwagonStepSlow',
      severity: 'warning',
      message: `The round is open for ${times} times its median, and nothing is wrong: its responses are long`,
      advice: 'Abort its longest requests, or bound later rounds by a smaller token budget or a tail policy that cuts.',
      sinceMs: round.openedAtMs + medianMs,
    },
  ];
}
