import { withoutCredentials } from '../logging/without-credentials';
import { getEnvFields } from './env.decorator';
import { getConfigSource, type ConfigSource } from './load-config';

export interface ConfigRow {
  variable: string;
  /** The value, with `***` for secrets and for credentials in addresses. */
  value: string;
  source: ConfigSource;
  description: string;
}

/** Describes a configuration for people and logs, without secrets. */
export function describeConfig(config: object): ConfigRow[] {
  return getEnvFields(config.constructor as new () => object).map((field) => {
    const value = formatValue((config as Record<string, unknown>)[field.property]);
    return {
      variable: field.variable,
      value: field.isSecret && value !== '' ? '***' : withoutCredentials(value),
      source: getConfigSource(config, field.property),
      description: field.description,
    };
  });
}

/** Formats a configuration as text, one variable a line, for `--print-config`. */
export function printedConfig(config: object): string {
  const rows = describeConfig(config);
  const nameWidth = Math.max(...rows.map((row) => row.variable.length));
  const valueWidth = Math.max(...rows.map((row) => row.value.length));
  return rows
    .map(({ variable, value, source, description }) =>
      [variable.padEnd(nameWidth), value.padEnd(valueWidth), source.padEnd(11), description].join('  '),
    )
    .join('\n');
}

function formatValue(value: unknown): string {
  if (value === undefined || value === null) return '';
  return Array.isArray(value) ? value.join(',') : String(value);
}
