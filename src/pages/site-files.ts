import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { SentAsset } from './asset.ts';
import type { MoreFiles, PageFiles, SiteRenderer } from './site-contract.ts';

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

type SiteFile = {
  readonly type: string;
  readonly content: Uint8Array;
  readonly br: Uint8Array | undefined;
  readonly gzip: Uint8Array | undefined;
  /** The name changes with the content, so it may be kept for ever. */
  readonly hasDigest: boolean;
};

type ManifestEntry = {
  readonly file: string;
  readonly css?: readonly string[];
  readonly imports?: readonly string[];
};

/** The build of web/: files for browsers, and the module that renders the first view of a page. */
export class SiteFiles {
  readonly pageFiles: PageFiles;
  readonly renderer: SiteRenderer;
  readonly #files: ReadonlyMap<string, SiteFile>;

  private constructor(pageFiles: PageFiles, renderer: SiteRenderer, files: ReadonlyMap<string, SiteFile>) {
    this.pageFiles = pageFiles;
    this.renderer = renderer;
    this.#files = files;
  }

  /** Reads all files once, 0.5 MB. Null if the folder does not exist, because the pages were not built. */
  static async load(folder: string = BUILT): Promise<SiteFiles | null> {
    if (!existsSync(path.join(folder, 'manifest.json'))) return null;
    const manifest = JSON.parse(readFileSync(path.join(folder, 'manifest.json'), 'utf8')) as Manifest;
    const renderer = (await import(pathToFileURL(path.join(folder, 'server', 'render.js')).href)) as SiteRenderer;
    const assets = path.join(folder, 'assets');
    const names = readdirSync(assets).filter((name) => path.extname(name) in TYPES);
    const files = new Map(names.map((name) => [name, readFile(path.join(assets, name))]));
    return new SiteFiles(pageFilesOf(manifest), renderer, files);
  }

  /** The file in the best coding that the reader accepts, or null if no file has this name. */
  asset(name: string, takes: (coding: 'br' | 'gzip') => boolean): SentAsset | null {
    const file = this.#files.get(name);
    if (file === undefined) return null;
    const headers = {
      'Content-Type': file.type,
      'Cache-Control': file.hasDigest ? 'public, max-age=31536000, immutable' : 'public, max-age=86400',
      Vary: 'Accept-Encoding',
      'X-Content-Type-Options': 'nosniff',
    };
    const coding = (['br', 'gzip'] as const).find((candidate) => file[candidate] !== undefined && takes(candidate));
    if (coding === undefined) return { body: file.content, headers };
    return { body: file[coding] as Uint8Array, headers: { ...headers, 'Content-Encoding': coding } };
  }
}

type Manifest = Readonly<Record<string, ManifestEntry>>;

/** `dist/web`, relative to `dist/pages`. */
const BUILT = fileURLToPath(new URL('../web/', import.meta.url));

function readFile(file: string): SiteFile {
  const compressed = (extension: string): Uint8Array | undefined =>
    existsSync(file + extension) ? readFileSync(file + extension) : undefined;
  return {
    type: TYPES[path.extname(file)] as string,
    content: readFileSync(file),
    br: compressed('.br'),
    gzip: compressed('.gz'),
    hasDigest: /-[\w-]{8}\.\w+$/.test(file),
  };
}

function pageFilesOf(manifest: Manifest): PageFiles {
  const entry = (source: string): ManifestEntry => {
    const found = manifest[source];
    if (found === undefined) throw new Error(`the build of web/ has no ${source}`);
    return found;
  };
  const main = entry('src/main.tsx');
  /** Also what its imports import: a browser finds that only when it has them. */
  const importsOf = (page: string): readonly string[] => {
    const found = new Set([page]);
    for (const name of found) for (const its of entry(name).imports ?? []) if (its !== 'src/main.tsx') found.add(its);
    return [...found].slice(1);
  };
  const more = (source: string): MoreFiles => {
    const { file, css = [] } = entry(source);
    const others = importsOf(source).map((name) => `/${entry(name).file}`);
    return { script: `/${file}`, imports: others, styles: css.map((style) => `/${style}`) };
  };
  const messages = Object.entries(manifest).flatMap(([source, { file }]) => {
    const language = /^src\/i18n\/messages\/([\w-]+)\.json$/.exec(source)?.[1];
    return language === undefined ? [] : [[language, `/${file}`] as const];
  });
  return {
    theme: `/${entry('src/theme.ts').file}`,
    script: `/${main.file}`,
    styles: (main.css ?? []).map((file) => `/${file}`),
    service: more('src/site/service-page.tsx'),
    console: more('src/console/console.tsx'),
    messages: Object.fromEntries(messages),
  };
}
