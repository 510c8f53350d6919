import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { Asset } from './asset.ts';

/** The page at /docs, and the files that it loads. */
type ReferencePage = { readonly html: string; readonly assets: readonly Asset[] };

/**
 * What the page may do: load scripts, styles and data from this gateway, and nothing else. Swagger UI needs no inline script and
 * no inline style. `data:` is for the arrows in its style sheet.
 */
export const REFERENCE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Follows the system's choice of light or dark, also when it changes. */
const SCRIPT = `'use strict';
const dark = matchMedia('(prefers-color-scheme: dark)');
const follow = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', follow);
follow();
SwaggerUIBundle({
  url: '/api/v1/openapi.json',
  dom_id: '#reference',
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  filter: false,
  validatorUrl: null,
});
`;

/** The list of servers is hidden, because there is one, and so are links between operations, because there are none. */
const STYLE = `body { margin: 0; }
html.dark-mode { color-scheme: dark; }
nav { display: flex; gap: 1.5rem; padding: 0.75rem 1.25rem; font: 600 15px system-ui, sans-serif; background: #14213d; }
nav a { color: #fff; text-decoration: none; }
nav a:hover, nav a:focus-visible { text-decoration: underline; }
nav a:first-child { margin-right: auto; }
.swagger-ui .info { margin: 2rem 0; }
.swagger-ui .scheme-container { padding: 0.5rem 0; box-shadow: none; }
.swagger-ui .response-col_links, .swagger-ui .scheme-container .servers-title, .swagger-ui .scheme-container .servers { display: none; }
html.dark-mode .swagger-ui .responses-inner .headers-wrapper .header-col { color: #c9d1dc; }
@media (max-width: 640px) {
  .swagger-ui .opblock .opblock-summary-control { flex-wrap: wrap; align-items: baseline; gap: 0.25rem 0; }
  .swagger-ui .opblock .opblock-summary-method { min-width: 4rem; padding: 0.25rem 0; }
  .swagger-ui .opblock .opblock-summary-path-description-wrapper { flex: 1 1 60%; gap: 0.25rem; }
  .swagger-ui .opblock .opblock-summary-path { max-width: 100%; overflow-wrap: anywhere; }
  .swagger-ui .opblock .opblock-summary-description { flex-basis: 100%; padding: 0; }
}
`;

/**
 * Reads the files of Swagger UI once, at start. docs/decisions/0030-the-api-reference-is-swagger-ui.md says why it is this library.
 *
 * @param links  text and path of the links at the top
 */
export function referencePage(links: readonly (readonly [text: string, path: string])[]): ReferencePage {
  const styles = [new Asset('swagger-ui.css', ofLibrary('swagger-ui.css')), new Asset('reference.css', STYLE)];
  const scripts = [
    new Asset('swagger-ui-bundle.js', ofLibrary('swagger-ui-bundle.js')),
    new Asset('reference.js', SCRIPT),
  ];
  const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Tollgate API reference</title>
<link rel="icon" href="data:,">
${styles.map(({ name }) => `<link rel="stylesheet" href="/docs/${name}">`).join('\n')}
<nav><a href="/">Tollgate</a>${links.map(([text, path]) => `<a href="${path}">${text}</a>`).join('')}</nav>
<main id="reference"><noscript>This page needs JavaScript. The document that it shows is at /api/v1/openapi.json.</noscript></main>
${scripts.map(({ name }) => `<script src="/docs/${name}"></script>`).join('\n')}
</html>
`;
  return { html, assets: [...styles, ...scripts] };
}

/**
 * `npm run build` copies the library's files to `swagger-ui/` beside the compiled code. Code that is not compiled takes them from
 * the package.
 */
function ofLibrary(name: 'swagger-ui.css' | 'swagger-ui-bundle.js'): Uint8Array {
  const copied = fileURLToPath(new URL(`./swagger-ui/${name}`, import.meta.url));
  return readFileSync(existsSync(copied) ? copied : createRequire(import.meta.url).resolve(`swagger-ui-dist/${name}`));
}
