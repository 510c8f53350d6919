import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
/**
 * Maximum bytes of HTML that are kept; at the bound the page that was not asked for the longest goes first. With its codings and the
 * answers that it shows, a kept page takes about twice as much.
 */
const MAX_KEPT_BYTES = 16_777_216;
const brotli = promisify(brotliCompress);
const gzipped = promisify(gzip);
/** Level 5 takes a millisecond, off the event loop, and is 3 % larger than what takes ten times as long. */
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } };
/** A page that was rendered. Its codings are made when first asked for. */
class RenderedPage {
    html;
    etag;
    #coded = new Map();
    constructor(html) {
        this.html = html;
        // Weak: the codings of a page share it.
        this.etag = `W/"${createHash('sha256').update(html).digest('base64url').slice(0, 22)}"`;
    }
    in(coding) {
        let made = this.#coded.get(coding);
        if (made === undefined) {
            made = coding === 'br' ? brotli(this.html, BROTLI) : gzipped(this.html);
            this.#coded.set(coding, made);
        }
        return made;
    }
}
/**
 * Renders pages, and keeps them as long as what they show stays the same: rendering takes 1 to 3 ms of the event loop that calls
 * need, and finding a kept page takes microseconds.
 */
export class RenderedPages {
    #files;
    #kept = new Map();
    #bytes = 0;
    constructor(files) {
        this.#files = files;
    }
    render(request) {
        const { page: kind, url, language, origin, data } = request;
        // Each failure is a page of its own: two that come in turn at one address must not be rendered in turn.
        const key = JSON.stringify([kind, url, language, origin, data.failure]);
        const known = this.#kept.get(key);
        if (known !== undefined)
            this.#drop(key, known.page);
        const page = known !== undefined && isSame(known.data, data)
            ? known.page
            : new RenderedPage(Buffer.from(this.#files.renderer.renderPage(request, this.#files.pageFiles)));
        this.#kept.set(key, { data, page });
        this.#bytes += page.html.length;
        for (const [oldest, { page: its }] of this.#kept) {
            if (this.#bytes <= MAX_KEPT_BYTES)
                break;
            this.#drop(oldest, its);
        }
        return page;
    }
    #drop(key, { html }) {
        this.#kept.delete(key);
        this.#bytes -= html.length;
    }
}
function isSame(a, b) {
    const names = Object.keys(a);
    return names.length === Object.keys(b).length && names.every((name) => a[name] === b[name]);
}
//# sourceMappingURL=rendered-pages.js.map