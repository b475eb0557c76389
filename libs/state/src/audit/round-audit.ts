import { transition, type FunctionRunner } from '../library/function-runner';
import type { Finding } from './findings';

interface GroupsPage {
  findings: Finding[];
  cursor?: number;
}
const roundsScript = transition<{ job: string; repair: boolean }, { findings: Finding[]; rounds: string[] }>(
  'audit/rounds',
);
const groupsScript = transition<{ job: string; roundId: string; list: string; cursor: number }, GroupsPage>(
  'audit/round-groups',
);

/** Looks once at the rounds of a job: counters against lists, lists against groups, and what the sweep must know. */
export class RoundAudit {
  constructor(private readonly runner: FunctionRunner) {}

  async look(pool: string, job: string, repair: boolean): Promise<Finding[]> {
    const { findings, rounds } = await this.runner.run(roundsScript, pool, { job, repair });
    for (const roundId of rounds) {
      for (const list of ['live', 'accepted']) {
        for (let cursor: number | undefined = 0; cursor !== undefined;) {
          const page: GroupsPage = await this.runner.run(groupsScript, pool, { job, roundId, list, cursor });
          findings.push(...page.findings);
          ({ cursor } = page);
        }
      }
    }
    return findings;
  }
}
