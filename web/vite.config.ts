import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';

// Two builds make the pages: the files for browsers, and with `--ssr` the module by which the gateway writes the first view
// (scripts/build-web.mjs runs both).
export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  base: '/',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  resolve: { dedupe: ['preact'] },
  build: {
    target: 'es2022',
    // The policy of the pages allows no `data:` scripts or fonts, and a file with a name of its own is kept by browsers.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    manifest: 'manifest.json',
    rollupOptions: {
      input: {
        main: fileURLToPath(new URL('src/main.tsx', import.meta.url)),
        theme: fileURLToPath(new URL('src/theme.ts', import.meta.url)),
      },
    },
    reportCompressedSize: false,
  },
  ssr: { noExternal: true, target: 'node' },
});
