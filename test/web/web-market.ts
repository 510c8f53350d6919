// A marketplace whose pages are visited with a real browser.

import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import type { AxeResults } from 'axe-core';
import { Marketplace } from '../integration/marketplace.ts';
import { type Browser, type BrowserContextOptions, type Page, startBrowser } from '../support/browser.ts';

/**
 * Where screenshots of the pages go, for anyone who changes the pages. Only with `SHOTS=on`, because they take a tenth of these tests'
 * time. Git ignores the folder.
 */
const SHOTS = process.env.SHOTS === 'on' ? path.resolve('test-results/web') : null;
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** In the page: the tables that must be scrolled sideways. */
export const WIDE_TABLES =
  "[...document.querySelectorAll('.table-frame')].filter((of) => of.scrollWidth > of.clientWidth).map((of) => of.ariaLabel)";

export type Look = {
  readonly dark?: boolean;
  readonly phone?: boolean;
  /** BCP 47: what the browser sends in Accept-Language. */
  readonly language?: string;
  /** `key_id:secret` of somebody who is signed in. Without one the visitor is nobody. */
  readonly key?: string;
  /** False: as for people who have turned scripts off. */
  readonly scripts?: boolean;
  /** Takes any certificate: a test makes its own. */
  readonly insecure?: boolean;
};

export class WebMarket {
  readonly market: Marketplace;
  readonly #browser: Browser;
  /** Pages whose visit has ended, by what a page has from its beginning. */
  readonly #free = new Map<string, Page[]>();

  private constructor(market: Marketplace, browser: Browser) {
    this.market = market;
    this.#browser = browser;
  }

  /** @param settings  environment variables of the gateway */
  static async start(
    settings: Readonly<Record<string, string>> = {},
    options: Parameters<typeof Marketplace.start>[1] = {},
  ): Promise<WebMarket> {
    const [market, browser] = await Promise.all([
      Marketplace.start({ WEB: 'on', ...settings }, options),
      startBrowser(),
    ]);
    return new WebMarket(market, browser);
  }

  /**
   * Opens a page of the gateway, in which nothing is left from another visit. It may be the page of one that has ended: that takes half the
   * CPU of a new page, because its process knows the scripts already.
   */
  async visit(
    address: string,
    { dark = false, phone = false, language = 'en', key, scripts = true, insecure = false }: Look = {},
  ): Promise<Visit> {
    const viewport = phone ? { width: 390, height: 844 } : { width: 1280, height: 900 };
    const fixed: BrowserContextOptions = {
      viewport,
      isMobile: phone,
      hasTouch: phone,
      javaScriptEnabled: scripts,
      ignoreHTTPSErrors: insecure,
      locale: language,
    };
    const kind = JSON.stringify(fixed);
    const free = this.#free.get(kind) ?? [];
    this.#free.set(kind, free);
    // What an ended visit has stored is removed at the gateway's own address only.
    const page = (address.startsWith('/') ? free.pop() : undefined) ?? (await this.#newPage(fixed));
    await page.setViewportSize(viewport);
    await page.emulateMedia({ colorScheme: dark ? 'dark' : 'light' });
    // As if the visitor had asked this tab to remember the key. As text: the tests' own types know no browser.
    const first = await page.addInitScript(`
      if (location.origin === ${JSON.stringify(this.market.baseUrl)}) {
        localStorage.clear();
        sessionStorage.clear();
        ${key === undefined ? '' : `sessionStorage['tollgate.key'] = ${JSON.stringify(key)};`}
      }`);
    // Without scripts no page can leave by itself.
    const visit = new Visit(page, this.market.baseUrl, scripts ? free : null);
    await page.goto(address);
    await first.dispose();
    return visit;
  }

  async #newPage(fixed: BrowserContextOptions): Promise<Page> {
    const context = await this.#browser.newContext({
      ...fixed,
      baseURL: this.market.baseUrl,
      timezoneId: 'UTC',
      reducedMotion: 'reduce',
      permissions: ['clipboard-read', 'clipboard-write'],
    });
    // As long as `until` waits: on a busy machine a page may take more than the 30 s of Playwright.
    context.setDefaultTimeout(60_000);
    return context.newPage();
  }

  async stop(): Promise<void> {
    await this.#browser.close();
    await this.market.stop();
  }
}

/** One visitor's page. */
export class Visit {
  readonly page: Page;
  /** What the browser complained about: errors on the console, exceptions, requests to elsewhere. A good visit has none. */
  readonly complaints: string[] = [];
  /** The address of every request that the page made. */
  readonly requested: string[] = [];
  readonly #gateway: string;
  readonly #free: Page[] | null;
  /** False after what only a new page undoes. */
  #canServeAgain = true;

  /** @param free  where the page goes when the visit has ended; null: nowhere */
  constructor(page: Page, gateway: string, free: Page[] | null) {
    this.page = page;
    this.#gateway = gateway;
    this.#free = free;
    page.context().on('page', () => {
      this.#canServeAgain = false;
    });
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') this.complaints.push(message.text());
    });
    page.on('pageerror', (error) => this.complaints.push(String(error)));
    page.on('request', (request) => this.requested.push(request.url()));
  }

  /**
   * Serious and critical findings of axe-core, one line each.
   *
   * @param only  what to look for: `colours` for a page that was judged in other colours already
   */
  async findings(only: 'all' | 'colours' = 'all'): Promise<string[]> {
    // Through the debugger, which the policy of the page does not bind.
    const loaded = await this.page.evaluate(() => 'axe' in globalThis);
    if (!loaded) await this.page.evaluate(AXE);
    // What passes is not described, and no style sheet is loaded again: both take longer than the checks themselves.
    const options = {
      resultTypes: ['violations'],
      preload: false,
      ...(only === 'all' ? {} : { runOnly: ['color-contrast'] }),
    };
    const results = await this.page.evaluate(async (chosen) => {
      const { axe } = globalThis as unknown as { axe: { run(options: object): Promise<AxeResults> } };
      const { violations } = await axe.run(chosen);
      return { violations };
    }, options);
    return results.violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html}\n${node.failureSummary}`));
  }

  /** From now on the network is that of a phone far away: 400 ms of latency, 50 kB/s. */
  async slow(): Promise<void> {
    this.#canServeAgain = false;
    const debuggerOf = await this.page.context().newCDPSession(this.page);
    const speed = { latency: 400, downloadThroughput: 50_000, uploadThroughput: 50_000 };
    await debuggerOf.send('Network.emulateNetworkConditions', { offline: false, ...speed });
  }

  /**
   * Holds back the responses to these requests.
   *
   * @param pattern  of their address, as `**\/assets/keys-*`
   * @returns lets them come
   */
  async hold(pattern: string): Promise<() => void> {
    let release = (): void => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    await this.page.route(pattern, async (route) => {
      await held;
      await route.continue();
    });
    return release;
  }

  /** What moved in this page since it was loaded, whatever the cause: `0.0573 dl class="stats"`. */
  shifts(): Promise<string[]> {
    return this.page.evaluate(`new Promise((resolve) => {
      const found = [];
      const told = ({ value, sources }) => value.toFixed(6) + ' ' + (sources[0]?.node?.outerHTML ?? '').slice(0, 99);
      const observer = new PerformanceObserver((list) => found.push(...list.getEntries().map(told)));
      observer.observe({ type: 'layout-shift', buffered: true });
      // What is buffered comes in a task of its own, and a last movement with the next frame.
      requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => resolve(found))));
    })`) as Promise<string[]>;
  }

  /** Once what was done so far is on the screen. */
  async drawn(): Promise<void> {
    await this.page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))');
  }

  /** What the keyboard is on: `h1 Calls`. */
  focused(): Promise<string> {
    const now = '[document.activeElement].map((one) => one.localName + " " + one.textContent)[0]';
    return this.page.evaluate(now) as Promise<string>;
  }

  /** The headings that skip a level below the one before, as `h4 Response`. */
  skippedHeadings(): Promise<string[]> {
    return this.page.evaluate(`(() => {
      let depth = 0;
      return [...document.querySelectorAll('h1, h2, h3, h4, h5, h6')].flatMap((heading) => {
        const before = depth;
        depth = Number(heading.localName[1]);
        return depth > before + 1 ? [heading.localName + ' ' + heading.textContent] : [];
      });
    })()`) as Promise<string[]>;
  }

  /** Writes `test-results/web/NAME.png`, the whole page, if somebody wants to look at it. */
  async shot(name: string): Promise<void> {
    if (SHOTS === null) return;
    mkdirSync(SHOTS, { recursive: true });
    await this.page.screenshot({ path: path.join(SHOTS, `${name}.png`), fullPage: true });
  }

  /** Ends the visit. Its page serves another one, unless this one was elsewhere or opened another tab. */
  async close(): Promise<void> {
    const { page } = this;
    const context = page.context();
    const isOurs = (url: string): boolean => url.startsWith(`${this.#gateway}/`) || url.startsWith('blob:');
    const isUsable = this.#canServeAgain && !page.isClosed() && this.requested.every(isOurs);
    if (this.#free === null || !isUsable) return context.close();
    page.removeAllListeners();
    context.removeAllListeners('page');
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    await page.mouse.move(0, 0);
    // The page goes there by itself: a step of the debugger would end its process.
    await page.evaluate("setTimeout(() => location.replace('about:blank'))");
    await page.waitForURL('about:blank');
    await context.clearCookies();
    this.#free.push(page);
  }
}
