import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { ApiError, unavailableError } from '../../src/errors.ts';
import { rateLimitedError } from '../../src/gate/answer.ts';
import type { ApiRequest } from '../../src/http/route.ts';
import type { PageRequest } from '../../src/pages/site-contract.ts';
import { SiteFiles } from '../../src/pages/site-files.ts';
import { siteRoutes } from '../../src/routes/site.ts';
import { errorPages } from '../../src/routes/site-errors.ts';

/** Pages whose text is what they were asked to show; `rendered` has what was really made. */
function filesThatCount() {
  const rendered: PageRequest[] = [];
  const renderPage = (request: PageRequest): string => {
    rendered.push(request);
    return JSON.stringify(request.data);
  };
  return { rendered, files: { renderer: { renderPage }, pageFiles: {}, asset: () => null } as unknown as SiteFiles };
}

/** The route of a page that gets its data from `ask`. */
const routeOf = (wanted: string, files: SiteFiles, ask: Parameters<typeof siteRoutes>[0]['ask']) =>
  siteRoutes({
    files,
    trustedProxyHops: 0,
    operator: { name: 'Acme' },
    ask,
    root: {},
    lacksAdmin: async () => false,
  }).find(({ path }) => path === wanted);

const asked = (language = 'en') => ({
  method: 'GET',
  path: '/anything',
  headers: ['accept', 'text/html', 'accept-language', language],
});

describe('pages of errors', () => {
  it('are rendered once, however often somebody is refused, and whatever else is refused in between', () => {
    const { rendered, files } = filesThatCount();
    const pageOf = errorPages(files, null);
    for (let seconds = 1; seconds <= 60; seconds++) {
      expect(pageOf(rateLimitedError(seconds), asked())).toMatchObject({
        status: 429,
        headers: { 'Retry-After': String(seconds) },
      });
      pageOf(unavailableError(), asked());
      pageOf(new ApiError('not_found'), asked('de'));
    }
    expect(rendered.length).toBe(3);
  });

  it("show the gateway's own words for what is wrong with a request", () => {
    const { files } = filesThatCount();
    const page = errorPages(files, null)(new ApiError('invalid_request', 'lang: must be one of en.'), asked());
    expect(String(page?.body)).toContain('lang: must be one of en.');
  });

  it('say who runs the gateway, as all others do', () => {
    const { rendered, files } = filesThatCount();
    const pageOf = errorPages(files, { name: 'Acme' });
    for (const error of [new ApiError('not_found'), unavailableError()]) pageOf(error, asked());
    expect(rendered.map(({ data }) => data.operator)).toEqual(['{"name":"Acme"}', '{"name":"Acme"}']);
  });
});

describe('the page of a service that does not exist', () => {
  const request = (id: string, host: string): ApiRequest =>
    ({
      params: { id },
      query: {},
      header: (name: string) => (name === 'host' ? host : undefined),
    }) as unknown as ApiRequest;

  it('is made once, however many ids and hosts somebody invents', async () => {
    const { rendered, files } = filesThatCount();
    const ask = async (): Promise<never> => {
      throw new ApiError('service_not_found');
    };
    const route = routeOf('/services/:id', files, ask);
    for (let i = 0; i < 20; i++) {
      expect(await route?.handle(request(`made-up-${i}`, `host-${i}`))).toMatchObject({ status: 404 });
    }
    expect(rendered.map(({ data }) => data.operator)).toEqual(['{"name":"Acme"}']);
  });
});

it('a missing file must not be cached as missing: the gateway that replaces this one may have it', async () => {
  const { files } = filesThatCount();
  const ask = (): Promise<never> => Promise.reject(new ApiError('not_found'));
  const route = routeOf('/assets/:file', files, ask);
  const request = { params: { file: 'main-12345678.js' }, header: () => undefined } as unknown as ApiRequest;
  await expect(route?.handle(request)).rejects.toMatchObject({ headers: { 'Cache-Control': 'no-store' } });
});

it('categories are asked for by a search that found nothing, and by no other page', async () => {
  const { files } = filesThatCount();
  const catalogOf = async (query: Record<string, string>, discover: object): Promise<string[]> => {
    const queries: string[] = [];
    const ask = async (_path: string, asked: string) => {
      queries.push(asked);
      return { status: 200, body: discover };
    };
    const route = routeOf('/', files, ask);
    const header = (name: string) => ({ accept: 'text/html', host: 'gateway.test' })[name];
    expect(await route?.handle({ query, header } as unknown as ApiRequest)).toMatchObject({ status: 200 });
    return queries;
  };
  const nothing = { services: [], total: 0 };
  expect(await catalogOf({ q: 'x' }, nothing)).toHaveLength(2);
  expect(await catalogOf({ lang: 'de' }, nothing)).toHaveLength(1);
  const said = { services: [{ operations: [{ example: { total: 0 } }] }], total: 1 };
  expect(await catalogOf({ q: 'x' }, said)).toHaveLength(1);
});

it('a page names all files that its script needs, also those that only another one imports', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'tollgate-site-'));
  try {
    for (const name of ['assets', 'server']) mkdirSync(path.join(folder, name));
    writeFileSync(path.join(folder, 'server/render.js'), '');
    const file = (name: string, imports: string[] = []) => ({ file: `assets/${name}.js`, imports });
    const manifest = {
      'src/main.tsx': file('main'),
      'src/theme.ts': file('theme'),
      'src/site/service-page.tsx': file('service', ['src/main.tsx']),
      'src/console/console.tsx': file('console', ['src/main.tsx', '_more.js']),
      '_more.js': file('more', ['src/main.tsx', '_texts.js', 'src/console/console.tsx']),
      '_texts.js': file('texts'),
    };
    writeFileSync(path.join(folder, 'manifest.json'), JSON.stringify(manifest));
    const pageFiles = (await SiteFiles.load(folder))?.pageFiles;
    expect(pageFiles?.console.imports).toEqual(['/assets/more.js', '/assets/texts.js']);
    expect(pageFiles?.service.imports).toEqual([]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
