// Writes random passwords of NATS and Redis for docker-compose.yml to .env, which is never committed. What is there stays.
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const file = join(process.argv[2] ?? '.', '.env');
const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : [];
const missing = ['NATS_PASSWORD', 'REDIS_PASSWORD'].filter(
  (name) => !lines.some((line) => line.startsWith(`${name}=`)),
);
// Hexadecimal: they stand in addresses and in configuration files.
for (const name of missing) lines.push(`${name}=${randomBytes(24).toString('hex')}`);
if (missing.length > 0) writeFileSync(file, `${lines.join('\n')}\n`, { mode: 0o600 });
console.log(missing.length > 0 ? `wrote ${missing.join(' and ')} to ${file}` : `${file} already has both passwords`);
