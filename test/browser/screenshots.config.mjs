import { defineConfig } from 'vitest/config';
import base from './vitest.config.mjs';

/** `npm run screenshots` */
export default defineConfig({ ...base, test: { ...base.test, include: ['test/browser/screenshots.ts'] } });
