import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT_ROOT } from '@broomwagon/platform';

export interface ParameterSchema {
  type?: string;
  items?: ParameterSchema;
  const?: unknown;
}
interface OpenApi {
  paths: Record<string, Record<string, { parameters: { name: string; in: string; schema: ParameterSchema }[] }>>;
}

/** docs/protocol/openapi.json, as text and parsed. */
export const OPENAPI_TEXT = readFileSync(join(PROJECT_ROOT, 'docs/protocol/openapi.json'), 'utf8');
export const OPENAPI = JSON.parse(OPENAPI_TEXT) as OpenApi;
