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

/**
 * The bar at the top looks like that of the pages of web/, whose tokens have these colours. The list of servers is hidden, because there is
 * one, and so are links between operations, because there are none.
 */
const STYLE = `body { margin: 0; }
html.dark-mode { color-scheme: dark; }
nav { display: flex; flex-wrap: wrap; align-items: center; gap: 0.25rem 1rem; box-sizing: border-box; min-height: 3.5rem;
  padding: 0.5rem max(1.25rem, calc(50vw - 36rem)); border-bottom: 1px solid #e4e4e0; background: #fbfbfa;
  font: 13px/1.5 system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif; }
nav a { padding: 0.3rem 0 calc(0.3rem - 2px); border-bottom: 2px solid transparent; color: #4b5261; text-decoration: none; }
nav a:hover, nav a:focus-visible { color: #171a21; text-decoration: underline; }
nav a[aria-current] { border-bottom-color: #0b6b57; color: #171a21; }
nav a:first-child { margin-right: 0.5rem; color: #171a21; font-size: 17px; font-weight: 680; letter-spacing: -0.02em; }
html.dark-mode nav { border-color: #2a2f39; background: #0f1115; }
html.dark-mode nav a { color: #b0b7c5; }
html.dark-mode nav a:hover, html.dark-mode nav a:first-child, html.dark-mode nav a[aria-current] { color: #eceef2; }
html.dark-mode nav a[aria-current] { border-bottom-color: #4fd1b0; }
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
<nav><a href="/">Tollgate</a>${links.map(([text, path]) => `<a href="${path}"${path === '/docs' ? ' aria-current="page"' : ''}>${text}</a>`).join('')}</nav>
<div id="reference"><noscript>This page needs JavaScript. The document that it shows is at /api/v1/openapi.json.</noscript></div>
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
