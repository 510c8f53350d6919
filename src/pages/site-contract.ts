// What the gateway and the module that writes the first view of a page (web/src/render.tsx) tell each other. Both sides are
// compiled against this file; it has types only.

/** One request for a page. */
export type PageRequest = {
  readonly page: 'catalog' | 'service' | 'console' | 'not-found' | 'failure';
  /** Path and query, as the browser shows them. */
  readonly url: string;
  /** BCP 47, one of the languages of src/catalog/languages.ts. */
  readonly language: string;
  /** The answers of the API that the page shows, as JSON texts by name; the browser gets the same texts. */
  readonly data: Readonly<Record<string, string>>;
  /** `https://host` of the gateway as the caller knows it, for addresses that people copy. */
  readonly origin: string;
};

export type MoreFiles = { readonly script: string; readonly styles: readonly string[] };

/** Files of the build that a page names, as paths below `/assets/`. */
export type PageFiles = {
  /** Runs before anything is painted. */
  readonly theme: string;
  readonly script: string;
  readonly styles: readonly string[];
  /** What the page of a service loads besides, and what the console does. */
  readonly service: MoreFiles;
  readonly console: MoreFiles;
  /** By language: the file with its words. English has none. */
  readonly messages: Readonly<Record<string, string>>;
};

/** What `dist/web/server/render.js` exports. */
export type SiteRenderer = {
  /** A whole HTML document. Takes 1 to 3 ms; it is synchronous. */
  renderPage(request: PageRequest, files: PageFiles): string;
};
