import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Controller, Get, Header } from '@nestjs/common';
import { VERSION, PROJECT_ROOT } from '@broomwagon/platform';

const OPENAPI_TEXT = readFileSync(join(PROJECT_ROOT, 'docs/protocol/openapi.json'), 'utf8');

/** Routes without a token, in addition to the health routes. They show no data of a pool. */
@Controller()
export class PublicController {
  @Get('health')
  health() {
    return { status: 'ok' };
  }

  @Get('version')
  version() {
    return { name: 'broomwagon', version: VERSION };
  }

  @Get('openapi.json')
  @Header('Content-Type', 'application/json; charset=utf-8')
  openapi() {
    return OPENAPI_TEXT;
  }
}
