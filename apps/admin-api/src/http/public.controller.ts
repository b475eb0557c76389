import { Controller, Get, Header } from '@nestjs/common';
import { VERSION } from '@broomwagon/platform';
import { OPENAPI_TEXT } from './openapi-file';

/** What needs no token, beside the routes of health; none of it shows anything of a pool. */
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
