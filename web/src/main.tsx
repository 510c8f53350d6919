import './design/tokens.css';
import './design/base.css';
import './design/components.css';
import './shell.css';
import './site/site.css';
import { hydrate, render } from 'preact';
import { App, preloadPage, ServicePage } from './app.tsx';
import { makeI18n } from './i18n/i18n.tsx';
import { LANGUAGES, type Language } from './i18n/languages.ts';
import { loadMessages } from './i18n/load.ts';
import { keepFocus, pressOnce } from './lost-focus.ts';
import { preloadOnIntent } from './preload.ts';
import { reloadWhenReplaced } from './replaced.ts';
import { resume } from './session.ts';

/** Takes over the page that the gateway wrote: its language, and the answers of the API that it shows. */
async function start(): Promise<void> {
  const root = document.getElementById('app');
  if (root === null) throw new Error('the page has no #app');
  const written = document.documentElement.lang as Language;
  const language = LANGUAGES.includes(written) ? written : 'en';
  const text = document.getElementById('first-data')?.textContent ?? '{}';
  const data = new Map(Object.entries(JSON.parse(text) as Record<string, unknown>));
  const [messages] = await Promise.all([
    loadMessages(language),
    // The code that takes over a page from the gateway must be loaded first; otherwise the page would be emptied. If it does not
    // arrive, the page says so.
    location.pathname.startsWith('/services/') ? ServicePage.preload().catch(() => {}) : null,
  ]);
  const i18n = makeI18n(language, messages);
  const app = <App i18n={i18n} data={data} />;
  if (location.pathname.startsWith('/console')) {
    // The gateway wrote only an outline, which has nothing to take over.
    root.textContent = '';
    render(app, root);
  } else hydrate(app, root);
  await resume();
}

reloadWhenReplaced();
preloadOnIntent(preloadPage);
keepFocus();
pressOnce();
void start().finally(() => delete document.documentElement.dataset.known);
