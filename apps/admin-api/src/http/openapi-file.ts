import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface ParameterSchema {
  type?: string;
  items?: ParameterSchema;
  const?: unknown;
}
interface OpenApi {
  paths: Record<string, Record<string, { parameters: { name: string; in: string; schema: ParameterSchema }[] }>>;
}

/** This file is `<root>/dist/apps/admin-api/src/http/openapi-file.js`, in tests it is without `dist`. */
const ROOT = join(__dirname.replace(/\/dist(?=\/apps\/admin-api\/src\/http$)/, ''), '../../../..');

/** docs/protocol/openapi.json, as text and parsed. */
export const OPENAPI_TEXT = readFileSync(join(ROOT, 'docs/protocol/openapi.json'), 'utf8');
export const OPENAPI = JSON.parse(OPENAPI_TEXT) as OpenApi;
