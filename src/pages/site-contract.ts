// The interface between the gateway and the module that renders the first view of a page (web/src/render.tsx). Both sides are
// compiled against this file, which has only types.

/** One request for a page. */
export type PageRequest = {
  readonly page: 'catalog' | 'service' | 'console' | 'not-found' | 'failure';
  /** Path and query, as in the browser's address bar. */
  readonly url: string;
  /** BCP 47, one of the languages of src/catalog/languages.ts. */
  readonly language: string;
  /** The answers of the API that the page shows, as JSON texts by name; the browser gets the same texts. */
  readonly data: Readonly<Record<string, string>>;
  /** `https://host` of the gateway as the caller knows it, for addresses that people copy. */
  readonly origin: string;
};

export type MoreFiles = {
  readonly script: string;
  /** What the script imports besides the main one. Named in the page, they do not cost another round trip. */
  readonly imports: readonly string[];
  readonly styles: readonly string[];
};

/** Files of the build that a page names, as paths below `/assets/`. */
export type PageFiles = {
  /** Runs before anything is painted. */
  readonly theme: string;
  readonly script: string;
  readonly styles: readonly string[];
  /** Additional files of a service's page, and those of the console. */
  readonly service: MoreFiles;
  readonly console: MoreFiles;
  /** By language: the file with its texts. English has none. */
  readonly messages: Readonly<Record<string, string>>;
};

/** What `dist/web/server/render.js` exports. */
export type SiteRenderer = {
  /** A whole HTML document. Takes 1 to 3 ms; it is synchronous. */
  renderPage(request: PageRequest, files: PageFiles): string;
};
