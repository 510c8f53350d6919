import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { OperatorDetails } from '../../src/platform/operator.ts';
import { useAddress, useHref, withQuery } from './address.tsx';
import { ProgressBar, Toasts } from './design/index.ts';
import { useFact } from './first-data.ts';
import { useI18n } from './i18n/i18n.tsx';
import { LANGUAGE_NAMES, LANGUAGES } from './i18n/languages.ts';
import { Logo } from './logo.tsx';
import { session } from './session.ts';
import { contactAddress, webAddress } from './web-address.ts';

/** Header and footer of every page. @param isStatic no script runs in this page, so elements that need one are left out */
export function Shell({
  isStatic = false,
  children,
}: {
  readonly isStatic?: boolean;
  readonly children: ComponentChildren;
}) {
  const { t } = useI18n();
  return (
    <>
      <a class="skip-link" href="#content">
        {t('site.skip')}
      </a>
      <ProgressBar />
      <Header isStatic={isStatic} />
      <main id="content" class="main">
        {children}
      </main>
      <Footer isStatic={isStatic} />
      <Toasts />
    </>
  );
}

function Header({ isStatic }: { readonly isStatic: boolean }) {
  const { t } = useI18n();
  const href = useHref();
  const { path } = useAddress();
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
          {/* A static page does not know who is signed in. */}
          {isStatic ? null : session.value === null ? (
            <a key="nobody" class="button button-small header-sign-in" href={href('/console')}>
              {t('nav.signIn')}
            </a>
          ) : (
            <a key="who" class="who" href={href('/console')} title={session.value.me.key_id}>
              {session.value.me.owner_id}
            </a>
          )}
        </span>
      </div>
    </header>
  );
}

function Footer({ isStatic }: { readonly isStatic: boolean }) {
  return (
    <footer class="footer">
      <div class="page row-between">
        <Languages />
        {!isStatic && <ThemeChoice />}
      </div>
      <OperatorLine />
    </footer>
  );
}

/** Who runs this gateway, if it says so. */
function OperatorLine() {
  const { t } = useI18n();
  const operator = useFact<OperatorDetails>('operator');
  if (operator === null) return null;
  const { name, contact } = operator;
  const terms = webAddress(operator.terms_url);
  const reach = contactAddress(contact);
  return (
    <p class="page footer-operator">
      {name !== undefined && <span>{t('footer.operator', { name })}</span>}
      {reach !== null && <a href={reach}>{t('footer.contact')}</a>}
      {terms !== null && <a href={terms}>{t('footer.terms')}</a>}
    </p>
  );
}

/** Links, so that crawlers find the languages, and people without scripts can change theirs. */
function Languages() {
  const { t, language } = useI18n();
  const address = useAddress();
  // The console is in English only.
  if (address.path.startsWith('/console')) return <span />;
  return (
    <nav class="languages" aria-label={t('nav.language')}>
      {LANGUAGES.map((code) => (
        <a
          key={code}
          href={withQuery(address, { lang: code })}
          lang={code}
          hreflang={code}
          aria-current={code === language ? 'true' : undefined}
          // A full load: the gateway renders the page in that language, labels included.
          onClick={(event) => event.stopPropagation()}
        >
          {LANGUAGE_NAMES[code]}
        </a>
      ))}
    </nav>
  );
}

function ThemeChoice() {
  const { t } = useI18n();
  const [theme, setTheme] = useState<string>(() =>
    typeof document === 'undefined' ? '' : (document.documentElement.dataset.theme ?? ''),
  );
  const choose = (chosen: string): void => {
    setTheme(chosen);
    if (chosen === '') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = chosen;
    try {
      if (chosen === '') localStorage.removeItem('theme');
      else localStorage.setItem('theme', chosen);
    } catch {
      // If a browser stores nothing for this site, the choice applies only to this page.
    }
  };
  return (
    <label class="footer-choice needs-script">
      <span class="visually-hidden">{t('nav.theme')}</span>
      <select class="input" value={theme} onChange={(event) => choose(event.currentTarget.value)}>
        <option value="">{t('nav.themeSystem')}</option>
        <option value="light">{t('nav.themeLight')}</option>
        <option value="dark">{t('nav.themeDark')}</option>
      </select>
    </label>
  );
}
