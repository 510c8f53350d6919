import { negotiateLanguage } from '../catalog/languages.ts';
import { ApiError } from '../errors.ts';
import { prefers } from '../http/accept-headers.ts';
import { headerOf } from '../http/request-head.ts';
import type { ApiResponse } from '../http/route.ts';
import { RenderedPages } from '../pages/rendered-pages.ts';
import type { SiteFiles } from '../pages/site-files.ts';
import type { OperatorDetails } from '../platform/operator.ts';
import { pageHeaders } from './site.ts';

/** The path of a request that has no route yet. */
type Asked = {
  readonly method: string;
  readonly path: string;
  readonly headers: Parameters<typeof headerOf>[0];
};

/**
 * What a person gets who opens an address in a browser and may not see it: a page that says why, and what can be done. Programs
 * still get the JSON, and so does anyone who opens an address of the API in a browser.
 */
export function errorPages(
  files: SiteFiles,
  details: OperatorDetails | null,
): (error: ApiError, asked: Asked) => ApiResponse | null {
  const pages = new RenderedPages(files);
  const operator = details === null ? {} : { operator: JSON.stringify(details) };
  return (error, { method, path, headers }) => {
    if (method !== 'GET' && method !== 'HEAD') return null;
    if (path.startsWith('/api/') || path.startsWith('/assets/')) return null;
    if (!prefers(headerOf(headers, 'accept'), 'text/html', 'application/json')) return null;
    const language = negotiateLanguage(headerOf(headers, 'accept-language'));
    // The address is left out of the key of the page: callers who invent addresses must not fill the memory with copies of it.
    const where = { url: '/', language, origin: '' };
    // The page shows the gateway's own message only for a bad request. The message of a 429 has a number that changes from request
    // to request, and requests beyond the limit take no tokens: each of them would be rendered.
    const shown = error.status === 400 ? error : new ApiError(error.code);
    const request =
      error.status === 404
        ? ({ ...where, page: 'not-found', data: operator } as const)
        : ({ ...where, page: 'failure', data: { ...operator, failure: JSON.stringify(shown.body()) } } as const);
    return {
      status: error.status,
      headers: { ...pageHeaders(language), ...error.headers, 'Cache-Control': 'no-store' },
      body: pages.render(request).html,
    };
  };
}
