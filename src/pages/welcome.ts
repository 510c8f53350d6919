import { createHash } from 'node:crypto';

/** What the operator says about itself. */
type OperatorDetails = { readonly name?: string; readonly contact?: string; readonly terms_url?: string };

const STYLE = `
:root { color-scheme: light dark; }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; background: light-dark(#f6f7f9, #10141c);
  color: light-dark(#14213d, #e8ebf2); font: 18px/1.6 system-ui, sans-serif; }
main { max-width: 34rem; padding: 2rem 1.5rem; }
h1 { margin: 0 0 0.75rem; font-size: 2.25rem; letter-spacing: -0.02em; }
p { margin: 0 0 0.75rem; }
code { padding: 0.1em 0.35em; border-radius: 0.25em; background: light-dark(#e6e9ef, #1f2735); font-size: 0.9em; }
ul { display: flex; flex-wrap: wrap; gap: 0.75rem; margin: 1.75rem 0; padding: 0; list-style: none; }
li a { display: block; padding: 0.5rem 1rem; border: 1px solid light-dark(#b9c0cd, #3a465c); border-radius: 0.5rem;
  text-decoration: none; }
a { color: inherit; }
li a:hover, li a:focus-visible { border-color: currentcolor; }
`;

/** What the page may do: only use its own style. */
export const WELCOME_POLICY = `default-src 'none'; img-src data:; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

/** The page at `/`. @param links  text and path, in this order */
export function welcomePage(
  links: readonly (readonly [text: string, path: string])[],
  operator: OperatorDetails | null,
): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Tollgate</title>
<link rel="icon" href="data:,">
<style>${STYLE}</style>
<main>
<h1>Tollgate</h1>
<p>A marketplace of services that agents find, call and pay for by the call.</p>
<p>Open an account with <code>POST /api/v1/keys</code>, and find a service with <code>GET /api/v1/discover</code>.</p>
<p>Call it below its <code>proxy_path</code> with that key. Each response says what it cost.</p>
<ul>${links.map(([text, path]) => `<li><a href="${path}">${text}</a></li>`).join('')}</ul>
${operator === null ? '' : `<p>${operatorHtml(operator)}</p>\n`}</main>
</html>
`;
}

function operatorHtml({ name, contact, terms_url: terms }: OperatorDetails): string {
  const link = (url: string, shown: string): string => `<a href="${escaped(url)}">${escaped(shown)}</a>`;
  return [
    ...(name === undefined ? [] : [`Operated by ${escaped(name)}.`]),
    ...(contact === undefined ? [] : [link(contact.includes('://') ? contact : `mailto:${contact}`, 'Contact')]),
    ...(terms === undefined ? [] : [link(terms, 'Terms')]),
  ].join(' ');
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
const escaped = (text: string): string => text.replace(/[&<>"]/g, (character) => ENTITIES[character] as string);
