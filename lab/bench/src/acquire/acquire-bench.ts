import { Progress } from '../progress';
import { Stage } from '../stage';
import { acquireReport, acquireText, type AcquireReport } from './report';
import { Scaling } from './scaling';
import { Throughput, type Effort } from './throughput';

const FULL: Effort = { rounds: 5, warmUpMs: 250, measureMs: 1_000 };
/** The same, with less confidence. */
const QUICK: Effort = { rounds: 3, warmUpMs: 150, measureMs: 400 };
/** Of throughput; then the pools of leases, sessions (in one step) and servers, and their replica. */
const PREPARATIONS = Throughput.preparations + 3 + 1 + 4 + 1;

/** `bench acquire`: everything in one run on servers of its own. */
export async function benchAcquire(
  stage: Stage,
  isQuick: boolean,
  against?: string,
): Promise<{ report: AcquireReport; text: string }> {
  const effort = isQuick ? QUICK : FULL;
  await stage.start((line) => console.error(line));
  const rowCount = Throughput.rowCount + (against === undefined ? 0 : Throughput.rowsAgainst);
  const steps = effort.rounds * (rowCount + Scaling.poolCount) + PREPARATIONS;
  const progress = new Progress(steps);
  try {
    const throughput = await Throughput.prepare(stage, effort, progress, against);
    await throughput.run(progress);
    throughput.letRun(undefined);
    const scaling = await Scaling.prepare(stage, effort, progress);
    await scaling.run(progress);
    const report = acquireReport(throughput, scaling, effort.rounds);
    return { report, text: acquireText(report, throughput, scaling) };
  } finally {
    progress.end();
  }
}
