// @ts-check
// The third part of `npm run build`: copies the files that the program reads at run time to the compiled code, so that an
// image needs only dist/ and the production packages. src/**/*.lua and *.txt → dist/, migrations/*.sql →
// dist/migrations/, and the files of the API reference → dist/pages/swagger-ui/.

import { copyFileSync, mkdirSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const projectDir = fileURLToPath(new URL('../', import.meta.url));

/**
 * @param {string} from folder
 * @param {string} to folder
 * @param {string} extension
 */
function copyTree(from, to, extension) {
  for (const entry of readdirSync(from, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile() || !entry.name.endsWith(extension)) continue;
    const source = path.join(entry.parentPath, entry.name);
    const target = path.join(to, path.relative(from, source));
    mkdirSync(path.dirname(target), { recursive: true });
    copyFileSync(source, target);
  }
}

for (const extension of ['.lua', '.txt'])
  copyTree(path.join(projectDir, 'src'), path.join(projectDir, 'dist'), extension);
// The files of Swagger UI that src/pages/reference.ts serves. So the package, with 10 MB of other files, stays a dev dependency.
const swaggerUi = path.join(projectDir, 'dist', 'pages', 'swagger-ui');
mkdirSync(swaggerUi, { recursive: true });
for (const name of ['swagger-ui.css', 'swagger-ui-bundle.js']) {
  copyFileSync(path.join(projectDir, 'node_modules', 'swagger-ui-dist', name), path.join(swaggerUi, name));
}
copyTree(path.join(projectDir, 'migrations'), path.join(projectDir, 'dist', 'migrations'), '.sql');
