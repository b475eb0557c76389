import { readData } from '@broomwagon/admin-client';
import { Argument, type Command } from 'commander';
import { complete, type FindNames } from '../completion';
import { type Act, Session } from '../session';
import { printable } from '../tables';

/** Time for names of the REST API, milliseconds: a shell waits for them. */
const NAMES_MS = 2_000;

/** Scripts by shell. Each asks the hidden command `complete` for the words that fit. */
const SCRIPTS = {
  bash: `_broomwagon() {
  local IFS=$'\\n' words
  words="$(broomwagon complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1)"
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _broomwagon broomwagon
`,
  zsh: `#compdef broomwagon
_broomwagon() {
  local -a found
  found=("\${(@f)$(broomwagon complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  found=("\${(@)found//:/\\\\:}")
  found=("\${(@)found//$'\\t'/:}")
  _describe broomwagon found
}
compdef _broomwagon broomwagon
`,
  fish: `function __broomwagon_complete
  set -l words (commandline -opc)
  set -e words[1]
  set -l current (commandline -ct)
  broomwagon complete -- $words "$current" 2>/dev/null
end
complete -c broomwagon -f -a '(__broomwagon_complete)'
`,
} as const;

/** Adds the command that prints completion scripts, and the hidden command that the scripts call. */
export function addCompletion(program: Command, act: Act): void {
  program
    .command('completion')
    .description('prints the script that completes commands, options and ids in a shell')
    .addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(SCRIPTS)))
    .addHelpText(
      'after',
      `
bash: broomwagon completion bash >> ~/.bashrc
zsh:  broomwagon completion zsh > "\${fpath[1]}/_broomwagon"
fish: broomwagon completion fish > ~/.config/fish/completions/broomwagon.fish`,
    )
    .action(act((session, shell: keyof typeof SCRIPTS) => session.write(SCRIPTS[shell])));
  program
    .command('complete [words...]', { hidden: true })
    .description('lists the words that complete a command line')
    .action(
      act(async (session, words: string[]) => {
        const quick = session.within(NAMES_MS);
        const candidates = await complete(program, words, (name) => findNames(quick, name));
        const lines = candidates.map(({ word, about }) => [word, about].filter((text) => text !== '').join('\t'));
        if (lines.length > 0) await session.writeRaw(`${lines.map(line).join('\n')}\n`);
      }),
    );
}

/** A tab separates word and explanation; other control characters are escaped. */
function line(text: string): string {
  return text.split('\t').map(printable).join('\t');
}

/** Names of the running system, by argument or option. */
async function findNames(session: Session, name: string): ReturnType<FindNames> {
  const { client } = session;
  if (name === 'pool') return (await readData(client.GET('/api/v1/pools'))).pools;
  const pool = await session.pool();
  const params = { path: { pool } };
  switch (name) {
    case 'serverId':
    case 'server':
      return (await readData(client.GET('/api/v1/pools/{pool}/servers', { params }))).servers.map(
        (one) => one.serverId,
      );
    case 'workerId':
    case 'worker':
      return (await readData(client.GET('/api/v1/pools/{pool}/workers', { params }))).workers.map(
        (one) => one.workerId,
      );
    case 'job':
      return (await readData(client.GET('/api/v1/pools/{pool}/jobs', { params }))).jobs;
    case 'roundId':
    case 'round': {
      const path = { pool, job: await session.job(pool, undefined) };
      const { rounds } = await readData(client.GET('/api/v1/pools/{pool}/jobs/{job}/rounds', { params: { path } }));
      return rounds.map((one) => one.roundId);
    }
    default:
      return [];
  }
}
