// `npm run build`: compiles everything to dist/, and writes the types of the client of the REST API; `--client`: only the
// types, after a change of docs/protocol/openapi.json.
import { compile, writeClientTypes } from './prepare.mjs';

if (process.argv.includes('--client')) writeClientTypes();
else compile();
