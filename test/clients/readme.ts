import { readFileSync } from 'node:fs';

/** The lines of the block of a client in README.md. */
export function readmeLines(client: string): string[] {
  const readme = readFileSync('README.md', 'utf8');
  const [, block] = new RegExp(`\\n\\*\\*${client}\\*\\*:.*\\n\\n\`\`\`\\w+\\n([^\`]*)\`\`\``).exec(readme)!;
  return block!.trim().split('\n');
}

/** The value of a setting in the block of a client in README.md, with the port of a gateway. */
export function readmeSetting(client: string, name: RegExp, port: number): string {
  const [, value] = new RegExp(`^${name.source}["\\s=]*(.*?)"?$`, 'm').exec(readmeLines(client).join('\n'))!;
  return value!.replace('30000', String(port));
}
