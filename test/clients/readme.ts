import { readFileSync } from 'node:fs';

/** The value of a setting in the block of a client in README.md, with the port of a gateway. */
export function readmeSetting(client: string, name: RegExp, port: number): string {
  const readme = readFileSync('README.md', 'utf8');
  const [, block] = new RegExp(`\\n\\*\\*${client}\\*\\*:.*\\n\\n\`\`\`\\w+\\n([^\`]*)\`\`\``).exec(readme)!;
  const [, value] = new RegExp(`^${name.source}["\\s=]*(.*?)"?$`, 'm').exec(block!)!;
  return value!.replace('30000', String(port));
}
