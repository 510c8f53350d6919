import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { Toasts } from './design/index.ts';
import { useI18n } from './i18n/i18n.tsx';
import { LANGUAGE_NAMES, LANGUAGES } from './i18n/languages.ts';
import { useHref, usePlace, withQuery } from './place.tsx';
import { session } from './session.ts';

/** Header and footer of every page. */
export function Shell({ children }: { readonly children: ComponentChildren }) {
  const { t } = useI18n();
  return (
    <>
      <a class="skip-link" href="#content">
        {t('site.skip')}
      </a>
      <Header />
      <main id="content" class="main">
        {children}
      </main>
      <Footer />
      <Toasts />
    </>
  );
}

function Header() {
  const { t } = useI18n();
  const href = useHref();
  const { path } = usePlace();
  const current = (prefix: string): 'page' | undefined =>
    (prefix === '/' ? path === '/' || path.startsWith('/services') : path.startsWith(prefix)) ? 'page' : undefined;
  return (
    <header class="header">
      <div class="page header-row">
        <a class="brand" href={href('/')}>
          <Logo />
          Tollgate
        </a>
        <nav class="nav" aria-label="Tollgate">
          <a href={href('/')} aria-current={current('/')}>
            {t('nav.services')}
          </a>
          <a href={href('/console')} aria-current={current('/console')}>
            {t('nav.console')}
          </a>
          <a href="/docs">{t('nav.docs')}</a>
          <a href="/llms.txt">{t('nav.agents')}</a>
        </nav>
        <span class="header-end">
          {session.value === null ? (
            <a class="button button-small" href={href('/console')}>
              {t('nav.signIn')}
            </a>
          ) : (
            <a class="who" href={href('/console')} title={session.value.me.key_id}>
              {session.value.me.owner_id}
            </a>
          )}
        </span>
      </div>
    </header>
  );
}

function Footer() {
  const { t, language } = useI18n();
  const place = usePlace();
  return (
    <footer class="footer">
      <div class="page row-between">
        <span class="faint small">Tollgate</span>
        <div class="row">
          <label class="footer-choice">
            <span class="visually-hidden">{t('nav.language')}</span>
            <select
              class="input"
              value={language}
              // A whole load: the gateway writes the page in that language, labels included.
              onChange={(event) => location.assign(withQuery(place, { lang: event.currentTarget.value }))}
            >
              {LANGUAGES.map((code) => (
                <option key={code} value={code} lang={code} selected={code === language}>
                  {LANGUAGE_NAMES[code]}
                </option>
              ))}
            </select>
          </label>
          <ThemeChoice />
        </div>
      </div>
    </footer>
  );
}

function ThemeChoice() {
  const { t } = useI18n();
  const [theme, setTheme] = useState<string>(() =>
    typeof document === 'undefined' ? '' : (document.documentElement.dataset.theme ?? ''),
  );
  const choose = (chosen: string): void => {
    setTheme(chosen);
    if (chosen === '') {
      delete document.documentElement.dataset.theme;
      localStorage.removeItem('theme');
    } else {
      document.documentElement.dataset.theme = chosen;
      localStorage.setItem('theme', chosen);
    }
  };
  return (
    <label class="footer-choice">
      <span class="visually-hidden">{t('nav.theme')}</span>
      <select class="input" value={theme} onChange={(event) => choose(event.currentTarget.value)}>
        <option value="">{t('nav.themeSystem')}</option>
        <option value="light">{t('nav.themeLight')}</option>
        <option value="dark">{t('nav.themeDark')}</option>
      </select>
    </label>
  );
}

/** A gate with its bar up. */
const Logo = () => (
  <svg class="logo" viewBox="0 0 24 24" width="24" height="24" aria-hidden="true">
    <rect x="3" y="10" width="4" height="11" rx="1.2" fill="currentColor" />
    <path d="M5 10.5 20 3.5" stroke="currentColor" stroke-width="2.6" stroke-linecap="round" />
    <path d="M11.2 7.6l3.2-1.5" stroke="var(--paper)" stroke-width="2.6" />
    <rect x="1.5" y="20" width="21" height="1.8" rx="0.9" fill="currentColor" />
  </svg>
);
