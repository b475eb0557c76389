// Runs one compiled program after installing and building if necessary: `node scripts/run.mjs FILE [ARG ...]`.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { build, install, requireNode, root } from './prepare.mjs';

requireNode();
install();
build();

const [file, ...args] = process.argv.slice(2);
const program = spawn(process.execPath, [join(root, 'dist', file), ...args], { stdio: 'inherit' });
// The terminal sends Ctrl-C to the whole group; a SIGTERM reaches only this process and is passed on.
process.on('SIGINT', () => {});
process.on('SIGTERM', () => program.kill('SIGTERM'));
program.on('exit', (code, signal) => process.exit(code ?? (signal === 'SIGINT' ? 130 : 143)));
