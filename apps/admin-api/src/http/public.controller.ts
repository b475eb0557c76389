import { Controller, Get, Header } from '@nestjs/common';
import { VERSION } from '@broomwagon/platform';
import { OPENAPI_TEXT } from './openapi-file';

/** Routes without a token, besides the health routes; none of them shows data of a pool. */
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
