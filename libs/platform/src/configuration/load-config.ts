import { readFileSync } from 'node:fs';
import { validateSync } from 'class-validator';
import { getEnvFields, type EnvField } from './env.decorator';
import { parseValue } from './parse-value';

export type ConfigSource = 'default' | 'file' | 'environment';

export interface LoadConfigOptions {
  /** Environment; default: process.env. */
  env?: Readonly<Record<string, string | undefined>>;
  /**
   * JSON file with the names of variables as keys. Default: the file in CONFIG_FILE. The environment overrides the
   * file.
   */
  file?: string;
  /** Further known `BROOMWAGON_` variables, for example variables of other apps with the same environment. */
  alsoKnown?: readonly string[];
}

/** All faults of a configuration in one error. */
export class ConfigurationError extends Error {
  constructor(readonly problems: readonly { variable: string; reason: string }[]) {
    super(`The configuration is wrong:\n${problems.map((one) => `  ${one.variable}: ${one.reason}`).join('\n')}`);
    this.name = 'ConfigurationError';
  }
}

const OUR_PREFIX = 'BROOMWAGON_';
/** Variables of the scripts of the repository, which the programs that they start inherit. */
const INHERITED = ['BROOMWAGON_CACHE'];
const sources = new WeakMap<object, Map<string, ConfigSource>>();

/**
 * Builds a configuration from the environment and an optional file, for a class with `@Env` fields. An empty variable
 * counts as not set.
 * @throws ConfigurationError naming every wrong variable
 */
export function loadConfig<T extends object>(type: new () => T, options: LoadConfigOptions = {}): T {
  const env = options.env ?? process.env;
  const fields = getEnvFields(type);
  const problems: { variable: string; reason: string }[] = [];
  const file = readConfigFile(options.file ?? (env.CONFIG_FILE || undefined), problems);
  const known = [...fields.map((field) => field.variable), ...INHERITED, ...(options.alsoKnown ?? [])];
  for (const name of unknownNames(env, file, known)) {
    const near = closestName(name, known);
    problems.push({ variable: name, reason: `is not known${near === undefined ? '' : `; did you mean ${near}?`}` });
  }
  const config = new type();
  const origin = new Map<string, ConfigSource>();
  for (const field of fields) {
    const text = env[field.variable];
    const given = text === undefined || text === '' ? file[field.variable] : text;
    if (given === undefined) {
      origin.set(field.property, 'default');
      continue;
    }
    origin.set(field.property, given === text ? 'environment' : 'file');
    const parsed = parseValue(field.kind, given);
    if ('reason' in parsed) {
      const reason = field.isSecret ? parsed.reason.replace(/, is ".*"$/s, '') : parsed.reason;
      problems.push({ variable: field.variable, reason });
    } else {
      (config as Record<string, unknown>)[field.property] = parsed.value;
    }
  }
  problems.push(...ruleProblems(config, fields, problems));
  if (problems.length > 0) throw new ConfigurationError(problems);
  sources.set(config, origin);
  return config;
}

export function getConfigSource(config: object, property: string): ConfigSource {
  return sources.get(config)?.get(property) ?? 'default';
}

function readConfigFile(
  path: string | undefined,
  problems: { variable: string; reason: string }[],
): Record<string, unknown> {
  if (path === undefined) {
    return {};
  }
  try {
    const content: unknown = JSON.parse(readFileSync(path, 'utf8'));
    if (typeof content === 'object' && content !== null && !Array.isArray(content)) {
      return content as Record<string, unknown>;
    }
    problems.push({ variable: 'CONFIG_FILE', reason: `${path} must hold a JSON object` });
  } catch (error) {
    problems.push({ variable: 'CONFIG_FILE', reason: `${path} cannot be read: ${(error as Error).message}` });
  }
  return {};
}

function unknownNames(
  env: Readonly<Record<string, string | undefined>>,
  file: Record<string, unknown>,
  known: readonly string[],
): string[] {
  const ours = Object.keys(env).filter((name) => name.startsWith(OUR_PREFIX));
  return [...new Set([...ours, ...Object.keys(file)])].filter((name) => !known.includes(name));
}

function ruleProblems(
  config: object,
  fields: readonly EnvField[],
  already: readonly { variable: string }[],
): { variable: string; reason: string }[] {
  const found = validateSync(config, { forbidUnknownValues: false });
  return found.flatMap((error) => {
    const variable = fields.find((field) => field.property === error.property)?.variable ?? error.property;
    const told = already.some((one) => one.variable === variable);
    return told ? [] : [{ variable, reason: Object.values(error.constraints ?? {}).join('; ') || 'is wrong' }];
  });
}

/** Returns the known name that is most similar to a mistyped name; undefined if no name is similar. */
function closestName(mistyped: string, known: readonly string[]): string | undefined {
  const withoutPrefix = mistyped.replace(/^BROOMWAGON_/, '');
  let best: { name: string; distance: number } | undefined;
  for (const name of known) {
    const distance = Math.min(editDistance(mistyped, name), editDistance(withoutPrefix, name));
    if (best === undefined || distance < best.distance) {
      best = { name, distance };
    }
  }
  return best !== undefined && best.distance <= Math.max(2, withoutPrefix.length / 3) ? best.name : undefined;
}

function editDistance(left: string, right: string): number {
  let previous = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let row = 1; row <= left.length; row++) {
    const current = [row];
    for (let column = 1; column <= right.length; column++) {
      const change = (previous[column - 1] as number) + (left[row - 1] === right[column - 1] ? 0 : 1);
      current.push(Math.min(change, (previous[column] as number) + 1, (current[column - 1] as number) + 1));
    }
    previous = current;
  }
  return previous[right.length] as number;
}
