// Creates a random password for each user of deploy/nats and deploy/redis. FOLDER/passwords.env is for NATS and Redis,
// FOLDER/USER.env for programs that connect as USER. Existing passwords stay, also your own; they must begin with a
// letter and have only letters, digits and `_`. FOLDER is .credentials by default.
import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const folder = process.argv[2] ?? '.credentials';
if (folder.startsWith('-')) {
  console.error('usage: node scripts/credentials.mjs [FOLDER]');
  process.exit(2);
}
const passwordsFile = join(folder, 'passwords.env');
const read = (file) => readFileSync(new URL(`../deploy/${file}`, import.meta.url), 'utf8');
/** Pairs of a user and the variable of its password. */
const natsUsers = [...read('nats/nats.conf').matchAll(/user: ([\w-]+), password: \$(\w+)/g)];
const redisUsers = [...read('redis/users.acl').matchAll(/^user ([\w-]+) on >\$(\w+)/gm)];

const before = existsSync(passwordsFile) ? readFileSync(passwordsFile, 'utf8') : '';
const passwords = new Map();
for (const [index, line] of before.split('\n').entries()) {
  if (line.trim() === '') continue;
  const [, name, password] = /^(\w+)=([A-Za-z]\w*)$/.exec(line) ?? [];
  if (name === undefined) {
    // The message leaves out the line itself, which may have a password.
    console.error(`error: line ${index + 1} of ${passwordsFile} is not NAME=PASSWORD; nothing was changed`);
    process.exit(2);
  }
  passwords.set(name, password);
}
const known = passwords.size;
for (const [, , variable] of [...natsUsers, ...redisUsers]) {
  // NATS parses the value of a variable like a value of its configuration: text must begin with a letter.
  if (!passwords.has(variable)) passwords.set(variable, `p${randomBytes(24).toString('hex')}`);
}

const files = new Map([['passwords', [...passwords].map(([name, password]) => `${name}=${password}`)]]);
const add = (user, ...lines) => files.set(user, [...(files.get(user) ?? []), ...lines]);
for (const [, user, variable] of natsUsers) {
  add(user, `NATS_USER=${user}`, `NATS_PASSWORD=${passwords.get(variable)}`, `NATS_INBOX_PREFIX=_INBOX.${user}`);
}
for (const [, user, variable] of redisUsers) {
  const login = `${user}:${passwords.get(variable)}`;
  add(user, `REDIS_URL=\${APP_REDIS_SCHEME:-redis}://${login}@\${APP_REDIS_HOSTS:-redis:6379}`);
}
mkdirSync(folder, { recursive: true, mode: 0o700 });
for (const [name, lines] of files) {
  const file = join(folder, `${name}.env`);
  writeFileSync(file, `${lines.join('\n')}\n`, { mode: 0o600 });
  // An editor may have written the file again, readable for others.
  chmodSync(file, 0o600);
}
console.log(`${passwords.size - known} new passwords, ${known} kept, in ${folder}`);
