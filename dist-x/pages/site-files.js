var __rewriteRelativeImportExtension = (this && this.__rewriteRelativeImportExtension) || function (path, preserveJsx) {
    if (typeof path === "string" && /^\.\.?\//.test(path)) {
        return path.replace(/\.(tsx)$|((?:\.d)?)((?:\.[^./]+?)?)\.([cm]?)ts$/i, function (m, tsx, d, ext, cm) {
            return tsx ? preserveJsx ? ".jsx" : ".js" : d && (!ext || !cm) ? m : (d + ext + "." + cm.toLowerCase() + "js");
        });
    }
    return path;
};
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
const TYPES = {
    '.css': 'text/css; charset=utf-8',
    '.js': 'text/javascript; charset=utf-8',
    '.svg': 'image/svg+xml',
};
/** What `npm run build` made of web/: files for browsers, and the module that writes the first view of a page. */
export class SiteFiles {
    pageFiles;
    renderer;
    #files;
    constructor(pageFiles, renderer, files) {
        this.pageFiles = pageFiles;
        this.renderer = renderer;
        this.#files = files;
    }
    /** Reads all files once, 0.5 MB. Null if the folder does not exist: the pages were not built. */
    static async load(folder = BUILT) {
        if (!existsSync(path.join(folder, 'manifest.json')))
            return null;
        const manifest = JSON.parse(readFileSync(path.join(folder, 'manifest.json'), 'utf8'));
        const renderer = (await import(__rewriteRelativeImportExtension(pathToFileURL(path.join(folder, 'server', 'render.js')).href)));
        const assets = path.join(folder, 'assets');
        const names = readdirSync(assets).filter((name) => path.extname(name) in TYPES);
        const files = new Map(names.map((name) => [name, readFile(path.join(assets, name))]));
        return new SiteFiles(pageFilesOf(manifest), renderer, files);
    }
    /** The file in the best coding that the reader takes, or null if there is none of that name. */
    asset(name, takes) {
        const file = this.#files.get(name);
        if (file === undefined)
            return null;
        const headers = {
            'Content-Type': file.type,
            'Cache-Control': file.hasDigest ? 'public, max-age=31536000, immutable' : 'public, max-age=86400',
            Vary: 'Accept-Encoding',
            'X-Content-Type-Options': 'nosniff',
        };
        const coding = ['br', 'gzip'].find((candidate) => file[candidate] !== undefined && takes(candidate));
        if (coding === undefined)
            return { body: file.content, headers };
        return { body: file[coding], headers: { ...headers, 'Content-Encoding': coding } };
    }
}
/** `dist/web`, from `dist/pages`. */
const BUILT = fileURLToPath(new URL('../web/', import.meta.url));
function readFile(file) {
    const compressed = (extension) => existsSync(file + extension) ? readFileSync(file + extension) : undefined;
    return {
        type: TYPES[path.extname(file)],
        content: readFileSync(file),
        br: compressed('.br'),
        gzip: compressed('.gz'),
        hasDigest: /-[\w-]{8}\.\w+$/.test(file),
    };
}
function pageFilesOf(manifest) {
    const entry = (source) => {
        const found = manifest[source];
        if (found === undefined)
            throw new Error(`the build of web/ has no ${source}`);
        return found;
    };
    const main = entry('src/main.tsx');
    const service = entry('src/site/service-page.tsx');
    const messages = Object.entries(manifest).flatMap(([source, { file }]) => {
        const language = /^src\/i18n\/messages\/([\w-]+)\.json$/.exec(source)?.[1];
        return language === undefined ? [] : [[language, `/${file}`]];
    });
    return {
        theme: `/${entry('src/theme.ts').file}`,
        script: `/${main.file}`,
        styles: (main.css ?? []).map((file) => `/${file}`),
        service: { script: `/${service.file}`, styles: (service.css ?? []).map((file) => `/${file}`) },
        messages: Object.fromEntries(messages),
    };
}
//# sourceMappingURL=site-files.js.map