import type { Command, Option } from 'commander';

/** One word that can be typed next, and its explanation. */
export interface Candidate {
  word: string;
  about: string;
}
/** Finds the names of an argument or option, for example the ids of servers. */
export type FindNames = (name: string, command: Command) => Promise<string[]>;

/**
 * Finds the words that can complete a command line, from the commands and options of the program.
 * @param words words after the name of the program; the last one is being typed, and may be empty
 */
export async function complete(program: Command, words: readonly string[], findNames: FindNames): Promise<Candidate[]> {
  const current = words.at(-1) ?? '';
  const { command, option, position } = walk(program, words.slice(0, -1));
  const startsHere = ({ word }: Candidate): boolean => word.startsWith(current);
  if (option)
    return (await listValues(option.argChoices, option.attributeName(), command, findNames)).filter(startsHere);
  if (current.startsWith('-')) return listOptions(command).filter(startsHere);
  const subcommands = command.commands.filter((one) => !isHidden(one));
  if (subcommands.length > 0 && position === 0) {
    return subcommands.map((one) => ({ word: one.name(), about: one.description() })).filter(startsHere);
  }
  const argument = command.registeredArguments[position] ?? command.registeredArguments.at(-1);
  const isOpen = argument !== undefined && (argument.variadic || position < command.registeredArguments.length);
  return isOpen ? (await listValues(argument.argChoices, argument.name(), command, findNames)).filter(startsHere) : [];
}

/** Follows the words to the command that they name; `option` lacks its value, `position` counts arguments. */
function walk(program: Command, words: readonly string[]): { command: Command; option?: Option; position: number } {
  let command = program;
  let option: Option | undefined;
  let position = 0;
  for (const word of words) {
    if (option) {
      option = undefined;
    } else if (word.startsWith('-')) {
      const found = allOptions(command).find((one) => one.long === word || one.short === word);
      if (found?.required) option = found;
    } else {
      const inner = command.commands.find((one) => one.name() === word || one.aliases().includes(word));
      if (inner && position === 0) command = inner;
      else position += 1;
    }
  }
  return { command, option, position };
}

function allOptions(command: Command): readonly Option[] {
  return command.parent ? [...command.options, ...allOptions(command.parent)] : command.options;
}

function listOptions(command: Command): Candidate[] {
  const options = allOptions(command).map(({ long, description }) => ({ word: long!, about: description }));
  return [...options, { word: '--help', about: 'display help for command' }];
}

async function listValues(
  choices: readonly string[] | undefined,
  name: string,
  command: Command,
  findNames: FindNames,
): Promise<Candidate[]> {
  const names = choices ?? (await findNames(name, command).catch(() => []));
  return names.map((word) => ({ word, about: '' }));
}

function isHidden(command: Command): boolean {
  return (command as Command & { _hidden?: boolean })._hidden === true;
}
