import { chooseLanguage, type Language, negotiateLanguage } from '../catalog/languages.ts';
import { ApiError, unavailableError } from '../errors.ts';
import { prefers, takes } from '../http/accept-headers.ts';
import { baseUrlOf } from '../http/base-url.ts';
import { isKnown } from '../http/entity-tags.ts';
import { ANY_QUERY, type ApiRequest, type ApiResponse, type Route } from '../http/route.ts';
import { RenderedPages } from '../pages/rendered-pages.ts';
import type { PageRequest } from '../pages/site-contract.ts';
import type { SiteFiles } from '../pages/site-files.ts';
import type { OperatorDetails } from '../platform/operator.ts';
import { within } from '../platform/timing.ts';

/**
 * What the pages may do: load scripts, styles and data from this gateway, and nothing else. No script can be written into the page
 * as text (`require-trusted-types-for`), whatever a provider calls its service.
 */
const SITE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; " +
  "manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'";

/** The same as in web/src/site/catalog-page.tsx, so that later requests of the browser continue the first view. */
const PAGE_SIZE = 24;
/** The query for the categories of all services, as in web/src/site/catalog-page.tsx. */
const CATEGORIES = 'limit=1&fields=id';
/** How long the page of a service waits for its statistics. A reading takes Postgres up to 20 ms. */
const STATS_WITHIN_MS = 500;
/** The parameters of the catalog's address, in the order of the cache key of its pages. Others are ignored. */
const CATALOG_PARAMETERS = ['q', 'category', 'min_quality', 'max_price', 'free', 'sort', 'cursor', 'lang'] as const;

type SiteOptions = {
  readonly files: SiteFiles;
  readonly trustedProxyHops: number;
  /** Answers a GET of this gateway's own API as for anybody. Rejects with `ApiError`. */
  readonly ask: (path: string, query: string, request: ApiRequest) => Promise<ApiResponse>;
  /** `/` as JSON. */
  readonly root: object;
  readonly operator: OperatorDetails | null;
  /** Whether the gateway waits for its first admin: the console then offers to sign up as one. */
  readonly lacksAdmin: () => Promise<boolean>;
};

/** The catalog, the pages of services, and the console: what people see. Tested by test/web/. */
export function siteRoutes(options: SiteOptions): Route[] {
  const { files } = options;
  const pages = new RenderedPages(files);
  // The footer of every page.
  const operator = options.operator === null ? {} : { operator: JSON.stringify(options.operator) };
  /** Left out if Postgres does not answer: only a form of the console depends on it. */
  const lacksAdmin = async (): Promise<{ lacks_admin?: string }> => {
    const isLacking = await within(options.lacksAdmin(), STATS_WITHIN_MS, unavailableError).catch(() => false);
    return isLacking ? { lacks_admin: 'true' } : {};
  };
  // People go to the console from any page without another load.
  const page = async (request: ApiRequest, made: Omit<PageRequest, 'origin'>, status = 200): Promise<ApiResponse> => {
    const data = { ...made.data, ...operator, ...(await lacksAdmin()) };
    const origin = baseUrlOf(request, options.trustedProxyHops);
    return sendPage(pages, request, { ...made, data, origin }, status);
  };

  const catalog = async (request: ApiRequest<undefined, Query>): Promise<ApiResponse> => {
    if (prefers(request.header('accept'), 'application/json', 'text/html')) {
      return { status: 200, headers: { Vary: 'Accept' }, body: options.root };
    }
    const asked = new URLSearchParams();
    for (const name of CATALOG_PARAMETERS) if (request.query[name]) asked.set(name, request.query[name]);
    const show = (language: string, data: PageRequest['data'], status = 200): Promise<ApiResponse> => {
      const text = asked.toString();
      return page(request, { page: 'catalog', url: text === '' ? '/' : `/?${text}`, language, data }, status);
    };
    // The page itself says what is wrong with a parameter, and keeps the search as requested.
    const refuse = (language: string, error: unknown): Promise<ApiResponse> => {
      if (!(error instanceof ApiError) || error.status !== 400) throw error;
      return show(language, { failure: JSON.stringify(error.body()) }, 400);
    };
    const acceptLanguage = request.header('accept-language');
    let language: Language;
    try {
      language = chooseLanguage(asked.get('lang') ?? undefined, acceptLanguage);
    } catch (error) {
      // The links of the page must not lead to the same refusal.
      asked.delete('lang');
      return refuse(negotiateLanguage(acceptLanguage), error);
    }
    const query = new URLSearchParams(asked);
    query.set('lang', language);
    query.set('limit', String(PAGE_SIZE));
    let discover: string;
    try {
      discover = textOf(await options.ask('/api/v1/discover', query.toString(), request));
    } catch (error) {
      return refuse(language, error);
    }
    const hasAsked = [...asked.keys()].some((name) => name !== 'lang');
    return show(language, { discover, ...(hasAsked && isNothing(discover) ? await categoriesOf(request) : {}) });
  };

  /** For somebody who found nothing. Left out if it fails: the page says that nothing was found, and the browser asks again. */
  const categoriesOf = async (request: ApiRequest): Promise<{ categories?: string }> => {
    try {
      return { categories: textOf(await options.ask('/api/v1/discover', CATEGORIES, request)) };
    } catch {
      return {};
    }
  };

  /** Left out while Postgres does not answer: the rest of the page must not wait for it, and the browser asks again. */
  const statsOf = async (id: string, request: ApiRequest): Promise<{ stats?: string }> => {
    try {
      const asked = options.ask(`/api/v1/services/${id}/stats`, '', request);
      return { stats: textOf(await within(asked, STATS_WITHIN_MS, unavailableError)) };
    } catch {
      return {};
    }
  };

  const service = async (request: ApiRequest<undefined, Query>): Promise<ApiResponse> => {
    const { lang } = request.query;
    const language = chooseLanguage(lang, request.header('accept-language'));
    const url = `/services/${encodeURIComponent(request.params.id ?? '')}${lang === undefined ? '' : `?lang=${language}`}`;
    try {
      const id = request.params.id ?? '';
      const text = textOf(await options.ask(`/api/v1/discover/${id}`, `lang=${language}`, request));
      // A listing brings recent statistics only if they were read in time. All its statistics are then in memory, and cost no query.
      const stats = text.includes('"stats":') ? await statsOf(id, request) : {};
      return await page(request, { page: 'service', url, language, data: { service: text, ...stats } });
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404) throw error;
      // Cached under no address: callers who invent ids must not fill the memory with copies of it.
      const where = { url: lang === undefined ? '/' : `/?lang=${language}`, origin: '' };
      return sendPage(pages, request, { ...where, page: 'not-found', language, data: operator }, 404);
    }
  };

  const consolePage = (request: ApiRequest<undefined, Query>): Promise<ApiResponse> =>
    page(request, { page: 'console', url: '/console', language: 'en', data: {} });

  return [
    pageRoute('/', 'The catalog as a page; JSON for those who prefer it: what this is, and where to go on', catalog),
    pageRoute('/services/:id', 'A service as a page', service),
    // Pages within the console: a list, one of its entries, and actions on the entry.
    ...['', '/:section', '/:section/:entry', '/:section/:entry/:act'].map((rest) =>
      pageRoute(`/console${rest}`, 'The console: what a key may see and do, as a page', consolePage),
    ),
    {
      method: 'GET',
      path: '/assets/:file',
      summary: 'A file of the pages',
      access: 'anyone',
      isPage: true,
      fromMemory: true,
      // A page with several files must cost its reader only one of sixty requests. The files are constants in memory.
      unmetered: true,
      query: ANY_QUERY,

      responses: {},
      errors: ['not_found'],
      handle: async ({ params, header }) => {
        const sent = files.asset(params.file ?? '', (coding) => takes(header('accept-encoding'), coding));
        // While gateways are replaced, the next one may have the file: no cache in between may remember that this one does not.
        if (sent === null) throw new ApiError('not_found', undefined, { headers: { 'Cache-Control': 'no-store' } });
        return { status: 200, ...sent };
      },
    },
  ];
}

type Query = Readonly<Record<string, string | undefined>>;

function pageRoute(path: string, summary: string, handle: Route['handle']): Route {
  return {
    method: 'GET',
    path,
    summary,
    access: 'anyone',
    isPage: true,
    asksApi: true,
    query: ANY_QUERY,
    responses: {},
    handle,
  };
}

/** Headers of every page, whatever its status. */
export const pageHeaders = (language: string): Readonly<Record<string, string>> => ({
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Language': language,
  'Content-Security-Policy': SITE_POLICY,
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cache-Control': 'no-cache',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  Vary: 'Accept, Accept-Encoding, Accept-Language',
});

async function sendPage(
  pages: RenderedPages,
  { header }: ApiRequest,
  request: PageRequest,
  status: number,
): Promise<ApiResponse> {
  const rendered = pages.render(request);
  const headers = { ...pageHeaders(request.language), ETag: rendered.etag };
  if (status === 200 && isKnown(rendered.etag, header('if-none-match'))) return { status: 304, headers };
  const coding = (['br', 'gzip'] as const).find((candidate) => takes(header('accept-encoding'), candidate));
  if (coding === undefined) return { status, headers, body: rendered.html };
  return { status, headers: { ...headers, 'Content-Encoding': coding }, body: await rendered.in(coding) };
}

/** Whether nothing was found. The text of a listing may say the same, so a page that does is parsed. */
const isNothing = (discover: string): boolean =>
  discover.includes('"total":0') && (JSON.parse(discover) as { total?: unknown }).total === 0;

const textOf = ({ body }: ApiResponse): string => (typeof body === 'string' ? body : JSON.stringify(body));
