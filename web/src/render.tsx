import { renderToString } from 'preact-render-to-string';
import type { PageFiles, PageRequest, SiteRenderer } from '../../src/pages/site-contract.ts';
import { FixedAddress } from './address.tsx';
import { SkeletonCard } from './design/index.ts';
import { FirstDataProvider } from './first-data.ts';
import { type I18n, I18nProvider, type Messages, makeI18n } from './i18n/i18n.tsx';
import { LANGUAGES, type Language } from './i18n/languages.ts';
import en from './i18n/messages/en.json';
import { NotFound } from './not-found.tsx';
import { Shell } from './shell.tsx';
import { CatalogPage } from './site/catalog-page.tsx';
import { FailurePage } from './site/failure.tsx';
import ServicePage from './site/service-page.tsx';
import { descriptionOf, titleOf } from './title.ts';

const MESSAGES = import.meta.glob<Messages>('./i18n/messages/*.json', { import: 'default', eager: true });

const i18ns = new Map(
  LANGUAGES.map((language) => [
    language as string,
    makeI18n(language, { ...en, ...(MESSAGES[`./i18n/messages/${language}.json`] ?? {}) } as Messages),
  ]),
);

/** Pages that say that something does not exist. For the router their address is another page, which it would draw over them. */
const isStatic = (page: PageRequest['page']): boolean => page === 'not-found' || page === 'failure';

function Content({ page }: Pick<PageRequest, 'page'>) {
  if (page === 'catalog') return <CatalogPage />;
  if (page === 'service') return <ServicePage />;
  if (page === 'not-found') return <NotFound />;
  if (page === 'failure') return <FailurePage />;
  // The console shows what a key may see, so there is only an outline to write before somebody signs in.
  return (
    <div class="page stack">
      <h1>Console</h1>
      <noscript>The console needs JavaScript. The API does all that it does: see /docs.</noscript>
      <div class="needs-script">
        <SkeletonCard lines={9} />
      </div>
    </div>
  );
}

export const renderPage: SiteRenderer['renderPage'] = (request, files) => {
  const { page, url, origin } = request;
  const i18n = i18ns.get(request.language) ?? (i18ns.get('en') as I18n);
  const data = new Map(Object.entries(request.data).map(([name, text]) => [name, JSON.parse(text) as unknown]));
  const body = renderToString(
    <FixedAddress url={url} origin={origin}>
      <FirstDataProvider value={data}>
        <I18nProvider value={i18n}>
          <Shell isStatic={isStatic(page)}>
            <Content page={page} />
          </Shell>
        </I18nProvider>
      </FirstDataProvider>
    </FixedAddress>,
  );
  return documentOf(request, files, i18n, data, body);
};

function documentOf(
  { page, url, data: texts, origin }: PageRequest,
  files: PageFiles,
  i18n: I18n,
  data: ReadonlyMap<string, unknown>,
  body: string,
): string {
  const title = escaped(titleOf(page, data, i18n));
  const description = escaped(descriptionOf(page, data, i18n));
  const messages = files.messages[i18n.language];
  const more = page === 'service' || page === 'console' ? files[page] : null;
  const head = [
    `<title>${title}</title>`,
    `<meta name="description" content="${description}">`,
    `<meta property="og:title" content="${title}">`,
    `<meta property="og:type" content="website">`,
    `<meta property="og:site_name" content="Tollgate">`,
    // A page of an error is the same at every address.
    ...(isStatic(page) ? [] : [`<meta property="og:url" content="${escaped(new URL(url, origin).href)}">`]),
    `<meta property="og:description" content="${description}">`,
    ...(page === 'console' || isStatic(page) ? ['<meta name="robots" content="noindex">'] : []),
    '<link rel="icon" href="/assets/icon.svg" type="image/svg+xml">',
    ...[...files.styles, ...(more?.styles ?? [])].map((path) => `<link rel="stylesheet" href="${path}">`),
    `<script src="${files.theme}"></script>`,
    ...(isStatic(page) ? [] : [`<script type="module" src="${files.script}"></script>`]),
    ...(more === null ? [] : [more.script, ...more.imports].map((path) => `<link rel="modulepreload" href="${path}">`)),
    ...(messages === undefined || isStatic(page) ? [] : [`<link rel="modulepreload" href="${messages}">`]),
    ...(page === 'catalog' || page === 'service' ? LANGUAGES.map((code) => alternate(origin, url, code)) : []),
  ];
  return `<!doctype html>
<html lang="${i18n.language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
${head.join('\n')}
</head>
<body>
<div id="app">${body}</div>
<script type="application/json" id="first-data">${embedded(texts)}</script>
</body>
</html>
`;
}

function alternate(origin: string, url: string, code: Language): string {
  const at = new URL(url, origin);
  at.searchParams.set('lang', code);
  return `<link rel="alternate" hreflang="${code}" href="${escaped(at.href)}">`;
}

/** JSON that cannot end its element, because providers choose much of it. */
function embedded(texts: Readonly<Record<string, string>>): string {
  const fields = Object.entries(texts).map(([name, text]) => `${JSON.stringify(name)}:${text}`);
  return `{${fields.join(',')}}`.replaceAll('<', '\\u003c');
}

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
