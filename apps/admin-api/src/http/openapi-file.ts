import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT_ROOT } from '@broomwagon/platform';

/** Text of docs/protocol/openapi.json. */
export const OPENAPI_TEXT = readFileSync(join(PROJECT_ROOT, 'docs/protocol/openapi.json'), 'utf8');
