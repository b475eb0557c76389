import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));

/** `npm run build` builds the console into dist/console. `npx vite apps/console` serves it during development. */
export default defineConfig({
  root: path('.'),
  plugins: [react()],
  resolve: { tsconfigPaths: true }, // like the resolution of imports by `vite build`
  build: { outDir: path('../../dist/console'), emptyOutDir: true, chunkSizeWarningLimit: 700 },
  // The API of a running system, for `npx vite`.
  server: { proxy: { '/api': process.env.BROOMWAGON_URL ?? 'http://127.0.0.1:8080' } },
});
