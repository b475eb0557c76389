// `npm run test:cluster`: failovers and moves of slots under load with a real Redis Cluster, real Sentinels and a real NATS
// cluster, and the specs of the state with a Cluster in the place of Redis. Takes about ten minutes; `-- test/cluster`
// runs a part.
import { build, install, requireNode } from './prepare.mjs';
import { runTests } from './vitest.mjs';

requireNode();
install();
build();
process.exit(runTests(['--config', 'test/cluster/vitest.config.mjs', ...process.argv.slice(2)]));
