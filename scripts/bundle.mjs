// @ts-check
// The second part of `npm run build`: puts the programs, with all packages that they need, into a few files. Node then opens a dozen
// files at a start instead of six hundred, which halves its CPU (docs/decisions/0071-programs-are-bundled.md).
//
//   dist/bundle/                 the programs, what they share, and what only one role loads
//   dist/main.js, dist/seed.js   start the programs in there, in place of what the compiler made
//
//   node scripts/bundle.mjs [OUT_DIR]

import { rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const projectDir = fileURLToPath(new URL('../', import.meta.url));
const src = path.join(projectDir, 'src');
const programs = ['main', 'seed'];

/**
 * Modules find their scripts, texts and threads beside themselves. In the bundle they still do: the URL of each is that of the file
 * which the compiler made of it.
 * @type {import('rolldown').Plugin}
 */
const urlsOfModules = {
  name: 'urls-of-modules',
  transform: {
    filter: { id: /\/src\/.*\.(ts|mjs)$/, code: /import\.meta\.url/ },
    handler: (code, id) => {
      const module = path.relative(src, id).replace(/\.ts$/, '.js');
      // It changes no line, so the source maps stay right without a map of this change.
      return { code: code.replaceAll('import.meta.url', `new URL('../${module}', import.meta.url).href`), map: null };
    },
  },
};

/** @param {string} outDir */
async function bundle(outDir) {
  rmSync(path.join(outDir, 'bundle'), { recursive: true, force: true });
  const built = await rolldown({
    input: Object.fromEntries(programs.map((program) => [program, path.join(src, `${program}.ts`)])),
    platform: 'node',
    // Packages with binaries, of which each process loads one.
    external: ['uws-current', 'uws-legacy'],
    plugins: [urlsOfModules],
  });
  await built.write({
    dir: path.join(outDir, 'bundle'),
    format: 'esm',
    sourcemap: true,
    entryFileNames: '[name].js',
    chunkFileNames: '[name].js',
  });
  await built.close();
  for (const program of programs)
    writeFileSync(path.join(outDir, `${program}.js`), `import './bundle/${program}.js';\n`);
}

await bundle(path.resolve(process.argv[2] ?? path.join(projectDir, 'dist')));
