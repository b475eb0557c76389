// Reporter of Vitest that writes the outcome of each test to the file TEST_OUTCOME, as JSON. Vitest's own JSON reporter
// leaves out why a test was skipped, and counts no failure when a file cannot be loaded or a hook fails.
import { writeFileSync } from 'node:fs';

export default class OutcomeReporter {
  onTestRunEnd(modules, unhandledErrors) {
    const outcomes = modules.flatMap((module) => [
      ...[module, ...module.children.allSuites()].flatMap(toFailure),
      ...[...module.children.allTests()].map(toOutcome),
    ]);
    outcomes.push(...unhandledErrors.map((error) => ({ file: '', title: 'unhandled error', ...failed(error) })));
    writeFileSync(process.env.TEST_OUTCOME, JSON.stringify(outcomes));
  }
}

/** An outcome for each error of a file or a suite itself: an import or a hook that failed. */
function toFailure(suite) {
  const { relativeModuleId: file } = suite.module ?? suite;
  return suite.errors().map((error) => ({ file, title: suite.fullName ?? '(file)', ...failed(error) }));
}

function toOutcome(test) {
  const { state, errors = [], note } = test.result();
  const { duration = 0 } = test.diagnostic() ?? {};
  return {
    file: test.module.relativeModuleId,
    title: test.fullName,
    state: state === 'pending' ? 'skipped' : state,
    reason: note ?? errors[0]?.message,
    durationMs: duration,
    meta: test.meta(),
  };
}

function failed({ message }) {
  return { state: 'failed', reason: message, durationMs: 0, meta: {} };
}
