// @ts-check
// The last part of `npm run build`: makes the pages from web/.
//
//   dist/web/assets/           files for browsers, with a digest in each name, beside them .br and .gz of what compresses
//   dist/web/manifest.json     which files belong to which page
//   dist/web/server/render.js  the module by which the gateway writes the first view
//
//   node scripts/build-web.mjs [OUT_DIR]

import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { build } from 'vite';

const projectDir = fileURLToPath(new URL('../', import.meta.url));
const configFile = path.join(projectDir, 'web', 'vite.config.ts');

/** @param {string} outDir */
async function buildWeb(outDir) {
  rmSync(outDir, { recursive: true, force: true });
  // Whatever it is here, as in tests: Vite's development build is slower and larger.
  process.env.NODE_ENV = 'production';
  await build({ configFile, logLevel: 'warn', build: { outDir, emptyOutDir: true } });
  await build({
    configFile,
    logLevel: 'warn',
    build: {
      outDir: path.join(outDir, 'server'),
      emptyOutDir: true,
      manifest: false,
      copyPublicDir: false,
      ssr: path.join(projectDir, 'web', 'src', 'render.tsx'),
      rollupOptions: { input: path.join(projectDir, 'web', 'src', 'render.tsx') },
    },
  });
  compressAll(path.join(outDir, 'assets'));
}

/** Once, with all the time it takes, instead of for each reader. @param {string} folder */
function compressAll(folder) {
  for (const name of readdirSync(folder)) {
    if (!/\.(js|css|svg)$/.test(name)) continue;
    const file = path.join(folder, name);
    const content = readFileSync(file);
    const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: content.length };
    writeIfSmaller(`${file}.br`, brotliCompressSync(content, { params }), content.length);
    writeIfSmaller(`${file}.gz`, gzipSync(content, { level: 9 }), content.length);
  }
}

/** @param {string} file @param {Buffer} compressed @param {number} length */
function writeIfSmaller(file, compressed, length) {
  if (compressed.length >= length) return;
  writeFileSync(`${file}.tmp`, compressed);
  renameSync(`${file}.tmp`, file);
}

await buildWeb(path.resolve(process.argv[2] ?? path.join(projectDir, 'dist', 'web')));
