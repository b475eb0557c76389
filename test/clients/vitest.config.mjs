import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { base } from '../../vitest.config.mts';

/** The published clients against the gateway. */
export default defineConfig({
  ...base,
  root: fileURLToPath(new URL('../..', import.meta.url)),
  test: {
    ...base.test,
    include: [
      'test/clients/*.{spec,check}.ts',
      'apps/gateway/src/dialects/*/{completions,chat,messages,responses}.spec.ts',
    ],
  },
});
