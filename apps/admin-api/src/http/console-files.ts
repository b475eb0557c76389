import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Logger } from '@nestjs/common';
import { PROJECT_ROOT } from '@broomwagon/platform';
import type { NestExpressApplication } from '@nestjs/platform-express';

const CONSOLE_FOLDER = join(PROJECT_ROOT, 'dist/console');
const YEAR_MS = 31_536_000_000;

/**
 * Serves the console at `/`, without a token: the files hold no data. A path that is no file of the console goes to the
 * routes. The names of files in `assets` contain a hash of their contents; all other files are read again each time.
 */
export function serveConsole(application: NestExpressApplication): void {
  if (!existsSync(CONSOLE_FOLDER)) {
    new Logger('console').warn(`There is no console: npm run build makes ${CONSOLE_FOLDER}`);
    return;
  }
  const assets = { index: false, immutable: true, maxAge: YEAR_MS, redirect: false } as const;
  application.useStaticAssets(join(CONSOLE_FOLDER, 'assets'), { ...assets, prefix: '/assets/' });
  application.useStaticAssets(CONSOLE_FOLDER, {
    redirect: false,
    setHeaders: (response) => response.setHeader('Cache-Control', 'no-cache'),
  });
}
