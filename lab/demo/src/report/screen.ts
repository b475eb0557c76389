import Table from 'cli-table3';
import { computeSpeedup, percent, summarize, type KindSummary } from './arithmetic';
import { autoText } from './auto-report';
import { controlText } from './control-cost';
import type { Report, RunReport } from './report';

const HEAD = 'steps,count,mean wall,mean gen,slowest,idle,tail,share,groups,done,cut,requeued'.split(',');
// Lines of plain characters survive a copy into a mail.
const LINES = { mid: '-', 'mid-mid': '+', middle: ' ' };
const NO_LINES = { top: '', 'top-mid': '', 'top-left': '', 'top-right': '', bottom: '', 'bottom-mid': '' };
const NO_CORNERS = { 'bottom-left': '', 'bottom-right': '', left: '', 'left-mid': '', right: '', 'right-mid': '' };

/** Formats the report as text. */
export function reportText(report: Report): string {
  const { baseline, speedup, totals, engines } = report;
  const lines = [
    '',
    `Rolled out ${report.prompts} prompts x ${report.samplesPerGroup} samples on ${engines.count} ` +
      `${engines.simulated ? `simulated engines (${engines.speed} simulated seconds per second)` : 'engines'}, ` +
      `${report.groupsPerStep} groups per training step.`,
    '',
    ...runText(report, engines.speed),
  ];
  for (const run of [...(baseline === null ? [] : [baseline]), ...report.compared]) {
    lines.push('', ...runText(run, engines.speed));
  }
  lines.push(
    '',
    'mean wall: seconds per step. mean gen, slowest: seconds from the start of a step to the end of a sample, mean of all',
    "and the last. idle: share of the engines' time with nothing to do. tail: mean seconds of the last tenth of the",
    'requests of a round; share: of the wall time.',
    '',
    `Samples: ${totals.submitted} submitted, ${totals.trained} trained, ${totals.unfinished} unfinished, ` +
      `${totals.failed} failed, ${totals.dropped} dropped; the checker counts ${totals.lost} lost and ` +
      `${totals.duplicated} duplicated.`,
  );
  if (speedup !== null && baseline !== null) {
    lines.push(
      `Speed-up over ${baseline.rebalance === null ? baseline.policy : 'no rebalance'}: ${speedup.toFixed(2)} (${baseline.wallSeconds.toFixed(1)} s against ` +
        `${report.wallSeconds.toFixed(1)} s, whole runs compared${besideText(report)}).`,
    );
  }
  if (baseline !== null) {
    for (const run of report.compared) {
      const times = computeSpeedup('wallSeconds', run, baseline)?.toFixed(2) ?? 'n/a';
      lines.push(
        `Speed-up of ${run.policy} over ${baseline.policy}: ${times} (${run.wallSeconds.toFixed(1)} s${besideText(run)}).`,
      );
    }
  }
  if (report.simulatedSpeedup !== null) {
    lines.push(
      `By the clocks of the engines, without the time in which they waited for services: ` +
        `${report.simulatedSpeedup.toFixed(2)} (${baseline?.engineSeconds?.toFixed(0)} s against ` +
        `${report.engineSeconds?.toFixed(0)} s).`,
    );
  }
  if (report.clockLagShare !== null) {
    const verdict = report.clockLagShare > 0.05 ? '' : '; a report made with more than 5 % is invalid';
    lines.push(`Clock lag of the simulated engines: ${percent(report.clockLagShare)}${verdict}.`);
  }
  return [...lines, ...report.notes, ''].join('\n');
}

function runText(run: RunReport, speed: number | null): string[] {
  const over = run.policy === 'wait' || run.policy === 'auto' ? '' : `, over-provision ${run.overProvision}`;
  const simulated = speed === null ? '' : ` (${Math.round(run.wallSeconds * speed).toLocaleString('en')} simulated s)`;
  const seconds = `${run.wallSeconds.toFixed(1)} s${simulated}`;
  return [
    `Policy ${run.policy}${over}${rebalanceText(run)}: ${run.steps.length} training steps in ${seconds}`,
    kindTable(summarize(run.steps)),
    costText(run),
    ...(run.control === null ? [] : [controlText(run.control, run.wallSeconds)]),
    ...(run.auto === null ? [] : autoText(run.auto)),
  ];
}

/** Cost of the control plane, for the line of a speed-up. */
function besideText({ control, wallSeconds }: RunReport): string {
  return control === null ? '' : `; control plane ${(control.cpuSeconds / wallSeconds).toFixed(2)} cores`;
}

function costText({ cost }: RunReport): string {
  return (
    `Length bias ${cost.lengthBias.toFixed(2)}, off-policy ${percent(cost.offPolicyShare)}, ` +
    `waste ${percent(cost.waste.share)} (${cost.waste.tokens} tokens), batch variation ${cost.batchVariation.toFixed(2)}`
  );
}

function rebalanceText({ rebalance }: RunReport): string {
  if (rebalance === null) return '';
  const { mode, policy, plans, moves } = rebalance;
  return mode === 'off' ? ', no rebalance' : `, rebalance ${mode} (${policy}, ${plans} plans, ${moves} moves)`;
}

/** Formats a table with a row per step kind. */
export function kindTable(rows: readonly KindSummary[]): string {
  const table = new Table({
    head: HEAD,
    colAligns: HEAD.map((_, index) => (index === 0 ? 'left' : 'right')),
    chars: { ...NO_LINES, ...NO_CORNERS, ...LINES },
    style: { head: [], border: [], compact: true },
  });
  for (const row of rows) {
    table.push([
      row.kind,
      row.steps,
      `${row.meanWallSeconds.toFixed(2)} s`,
      `${row.meanGenerationSeconds.toFixed(2)} s`,
      `${row.slowestGenerationSeconds.toFixed(2)} s`,
      row.idleShare === null ? 'n/a' : percent(row.idleShare),
      `${row.meanTailSeconds.toFixed(2)} s`,
      percent(row.tailShare),
      row.groupsAccepted,
      row.requestsDone,
      row.requestsCut,
      row.groupsRequeued,
    ]);
  }
  return table.toString();
}
