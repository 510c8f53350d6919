// @ts-check
// The second part of `npm run build`: puts each program that starts often, with all packages that it needs, into a few files. Node
// then opens a dozen files at a start instead of six hundred, which halves its CPU (docs/decisions/0071-programs-are-bundled.md).
//
//   dist/main.js, dist/seed.js, dist/catalog/openapi-import/worker.js   in place of what the compiler made there
//   dist/chunks/                                                        what they share, and what only one role loads
//
//   node scripts/bundle.mjs [OUT_DIR]

import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const projectDir = fileURLToPath(new URL('../', import.meta.url));
const src = path.join(projectDir, 'src');
/** Relative to src/, without extension. */
const programs = ['main', 'seed', 'catalog/openapi-import/worker'];
const chunks = 'chunks';

/**
 * Modules find their scripts, texts and threads beside themselves. In a chunk each still does: its URL is that of the file which the
 * compiler made of it.
 * @type {import('rolldown').Plugin}
 */
const ownUrls = {
  name: 'own-urls',
  transform: {
    filter: { id: /\/src\/.*\.(ts|mjs)$/, code: /import\.meta\.url/ },
    handler: (code, id) => {
      const module = path.relative(src, id).replace(/\.ts$/, '.js');
      // Without a line break: the source maps stay right without a map of this change.
      return { code: code.replaceAll('import.meta.url', `new URL('../${module}', import.meta.url).href`), map: null };
    },
  },
};

/** @param {string} outDir */
async function bundle(outDir) {
  const built = await rolldown({
    input: Object.fromEntries(programs.map((program) => [program, path.join(src, `${program}.ts`)])),
    platform: 'node',
    // Packages with binaries, of which each process loads one.
    external: ['uws-current', 'uws-legacy'],
    plugins: [ownUrls],
  });
  await built.write({
    dir: outDir,
    format: 'esm',
    sourcemap: true,
    entryFileNames: '[name].js',
    chunkFileNames: `${chunks}/[name]-[hash].js`,
  });
  await built.close();
}

await bundle(path.resolve(process.argv[2] ?? path.join(projectDir, 'dist')));
