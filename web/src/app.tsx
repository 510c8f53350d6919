import { LocationProvider, Route, Router } from 'preact-iso';
import { BrowserAddress } from './address.tsx';
import { ConsoleWaiting } from './console/waiting.tsx';
import { type FirstData, FirstDataProvider } from './first-data.ts';
import { type I18n, I18nProvider } from './i18n/i18n.tsx';
import { lazy } from './lazy.tsx';
import { NotFound } from './not-found.tsx';
import { Shell } from './shell.tsx';
import { CatalogPage } from './site/catalog-page.tsx';
import { ServiceWaiting } from './site/service-waiting.tsx';

// A visitor of the catalog loads neither of these. The first view of a service is shown before its script has loaded: see main.tsx.
export const ServicePage = lazy(() => import('./site/service-page.tsx'), ServiceWaiting, 'page');
export const Console = lazy(() => import('./console/console.tsx'), ConsoleWaiting, 'page');

/** Only these paths are pages of this program; links to others load a new document. */
const OURS = /^\/($|\?|services\/|console($|\/|\?))/;

/** Fetches the files that the page at this path needs in addition to the catalog's own. */
export function preloadPage(path: string): Promise<unknown> | null {
  if (path.startsWith('/services/')) return ServicePage.preload();
  if (!/^\/console(\/|$)/.test(path)) return null;
  return Console.preload().then(({ preloadSection }) => preloadSection(path));
}

export function App({ i18n, data }: { readonly i18n: I18n; readonly data: FirstData }) {
  return (
    <LocationProvider scope={OURS}>
      <BrowserAddress>
        <FirstDataProvider value={data}>
          <I18nProvider value={i18n}>
            <Shell>
              <Router>
                <Route path="/" component={CatalogPage} />
                <Route path="/services/:id" component={ServicePage} />
                <Route path="/console" component={Console} />
                <Route path="/console/*" component={Console} />
                <Route default component={NotFound} />
              </Router>
            </Shell>
          </I18nProvider>
        </FirstDataProvider>
      </BrowserAddress>
    </LocationProvider>
  );
}
