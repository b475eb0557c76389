// `npm run test:unit`, `test:services` and `test:system`: the specs of one tier (tiers.mjs) with Vitest. `-- --watch` runs
// them again after each change; `-- libs/policies` runs a part.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { install, requireNode, root } from './prepare.mjs';

requireNode();
install();
const [tier, ...args] = process.argv.slice(2);
const { status } = spawnSync(
  process.execPath,
  [join(root, 'node_modules', 'vitest', 'vitest.mjs'), ...(args.includes('--watch') ? args : ['run', ...args])],
  { cwd: root, stdio: 'inherit', env: { ...process.env, TEST_TIER: tier } },
);
process.exit(status ?? 1);
