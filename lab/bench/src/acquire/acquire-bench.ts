import { Progress } from '../progress';
import { Stage } from '../stage';
import { acquireReport, acquireText, type AcquireReport } from './report';
import { Scaling } from './scaling';
import { Throughput, type Effort } from './throughput';

const FULL: Effort = { rounds: 5, warmUpMs: 250, measureMs: 1_000 };
/** Effort of `--quick`: fewer and shorter rounds. */
const QUICK: Effort = { rounds: 3, warmUpMs: 150, measureMs: 400 };
/** Steps of preparation: of throughput; then pools of leases, of sessions (one step) and of servers, and a replica. */
const PREPARATIONS = Throughput.preparations + 3 + 1 + 4 + 1;

/** `bench acquire`: throughput and scaling of acquires, in one run on servers of its own. */
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
