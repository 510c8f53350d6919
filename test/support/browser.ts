// A real browser, Chromium, for tests of what a web page can do. Start one per test file (0.2 s), not one per test.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Browser, type BrowserContextOptions, chromium, type Page, type Route } from 'playwright-core';
import { findChromium } from '../../scripts/local/chromium-install.mjs';

export type { Browser, BrowserContextOptions, Page, Route };

/** No page here runs long enough to win back what its optimised code costs: a visit takes a sixth less CPU with these. */
const PAGES_ARE_SHORT = '--no-opt --no-maglev --single-threaded';

/**
 * Starts Chromium without a window. If the machine has none, the error says how to get one: a browser test is never skipped.
 *
 * In this browser every host name that ends in `.test` leads to 127.0.0.1, as if its owner had pointed it there. So a page can have its
 * own host name, or one that is rebound to the gateway.
 */
export function startBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: findChromium(),
    // Chromium refuses to run as root with its sandbox. The only pages here are the tests' own.
    chromiumSandbox: false,
    args: ['--host-resolver-rules=MAP *.test 127.0.0.1', `--js-flags=${PAGES_ARE_SHORT}`],
  });
}

export type OpenedPage = {
  readonly page: Page;
  /** For example `http://shop.test:40123`. */
  readonly origin: string;
  close(): Promise<void>;
};

/**
 * Opens an empty page of an origin of its own: that of a server on a free port of 127.0.0.1, which serves this page at every path.
 *
 * @param hostName  `127.0.0.1`, or a name that ends in `.test`
 */
export async function startPage(
  browser: Browser,
  hostName = '127.0.0.1',
  html = '<!doctype html>',
): Promise<OpenedPage> {
  const server = createServer((_request, response) => {
    response.setHeader('Content-Type', 'text/html; charset=utf-8');
    response.end(html);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://${hostName}:${(server.address() as AddressInfo).port}`;
  const page = await browser.newPage();
  await page.goto(origin);
  return {
    page,
    origin,
    close: async () => {
      await page.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
