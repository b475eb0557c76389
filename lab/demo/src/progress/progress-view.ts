import { cutText, type RoundStatus } from '@broomwagon/contracts';
import type { LostGroup } from '../../../reference-trainer/src/loop/lost-groups';
import type { Reconciled } from '../../../reference-trainer/src/loop/reconcile';
import type { StepReport } from '../../../reference-trainer/src/loop/step-report';

type ShownStatus =
  'step' | 'kind' | 'acceptedGroups' | 'neededGroups' | 'requestsDone' | 'requestsCut' | 'groupsRequeued';

/** Data of a running step on the display. */
export interface ProgressView extends Pick<RoundStatus, ShownStatus> {
  policy: string;
  steps: number;
  elapsedSeconds: number;
  servers: readonly { serverId: string; inflight: number }[];
}

const BAR_WIDTH = 28;
const SHOWN_SERVERS = 16;
const SHOWN_LOST = 3;

/** Renders the view as lines narrower than `columns`. */
export function renderProgress(view: ProgressView, columns: number): string[] {
  const { policy, step, steps, kind, acceptedGroups, neededGroups, servers } = view;
  const share = neededGroups === 0 ? 1 : Math.min(1, acceptedGroups / neededGroups);
  const filled = Math.round(share * BAR_WIDTH);
  const bar = '='.repeat(filled) + ' '.repeat(BAR_WIDTH - filled);
  const shown = servers.slice(0, SHOWN_SERVERS).map(({ inflight }) => inflight);
  const rest = servers.length > SHOWN_SERVERS ? ' ...' : '';
  const total = servers.reduce((sum, { inflight }) => sum + inflight, 0);
  return [
    `${policy}: step ${step} of ${steps} (${kind})  [${bar}] ${acceptedGroups}/${neededGroups} groups  ` +
      `${view.elapsedSeconds.toFixed(1)} s`,
    `  requests done ${view.requestsDone}, cut ${view.requestsCut}, groups requeued ${view.groupsRequeued}`,
    `  in flight ${total}: ${shown.join(' ')}${rest}`,
  ].map((line) => cutText(line, Math.max(1, columns - 1)));
}

/** Renders a finished step as one line. */
export function renderStep(policy: string, step: StepReport, steps: number): string {
  const idle = step.idleShare === null ? '' : `, idle ${(step.idleShare * 100).toFixed(0)} %`;
  return (
    `${policy}: step ${step.step} of ${steps} (${step.kind})  ${step.groupsAccepted} groups, ` +
    `${step.requestsDone} requests done, ${step.requestsCut} cut, ${step.groupsRequeued} groups requeued, ` +
    `${step.wallSeconds.toFixed(1)} s${idle}`
  );
}

/** Renders the line for a restart of Redis, or for a loss of its last changes. */
export function renderReconciled({ lostSteps, lostGroups }: Pick<Reconciled, 'lostSteps' | 'lostGroups'>): string {
  const steps = lostSteps.length === 0 ? 'no trained step' : `the trained steps ${lostSteps.join(', ')}`;
  return `Redis was restarted or lost its last changes: ${steps} and ${lostGroups} submitted groups are sent again`;
}

/** Renders groups that ended without training, with their reasons. */
export function renderLost(groups: readonly LostGroup[]): string {
  const named = groups.slice(0, SHOWN_LOST).map(({ groupId, state, reason, requestId, message }) => {
    const sample = requestId === undefined ? '' : ` for ${requestId}`;
    return `${groupId} ${state}${sample} (${reason}${message === undefined ? '' : `: ${message}`})`;
  });
  const more = groups.length > SHOWN_LOST ? `; and ${groups.length - SHOWN_LOST} more` : '';
  return `Groups that ended without training: ${named.join('; ')}${more}`;
}

/** Renders the list of prompts that failed for good or were dropped. */
export function renderMissing(missing: readonly string[]): string {
  return `Not trained: ${missing.length} prompts: ${missing.join(' ')}`;
}
