import { LocationProvider, Route, Router } from 'preact-iso';
import { type FirstData, FirstDataProvider } from './first-data.ts';
import { type I18n, I18nProvider } from './i18n/i18n.tsx';
import { lazy } from './lazy.tsx';
import { NotFound } from './not-found.tsx';
import { BrowserPlace, withOwnPlace } from './place.tsx';
import { Shell } from './shell.tsx';
import { CatalogPage } from './site/catalog-page.tsx';

// A visitor of the catalog loads neither of these. The first view of a service is there before its script: see main.tsx.
export const ServicePage = lazy(() => import('./site/service-page.tsx'), 'page');
const Console = lazy(() => import('./console/console.tsx'), 'page');

// While the next page loads the present one stays. It must not take the new address for its own.
const KeptCatalog = withOwnPlace(CatalogPage);
const KeptService = withOwnPlace(ServicePage);
const KeptConsole = withOwnPlace(Console);

/** Only these paths are pages of this program; links to others load what is there. */
const OURS = /^\/($|\?|services\/|console($|\/|\?))/;

export function App({ i18n, data }: { readonly i18n: I18n; readonly data: FirstData }) {
  return (
    <LocationProvider scope={OURS}>
      <BrowserPlace>
        <FirstDataProvider value={data}>
          <I18nProvider value={i18n}>
            <Shell>
              <Router>
                <Route path="/" component={KeptCatalog} />
                <Route path="/services/:id" component={KeptService} />
                <Route path="/console" component={KeptConsole} />
                <Route path="/console/*" component={KeptConsole} />
                <Route default component={NotFound} />
              </Router>
            </Shell>
          </I18nProvider>
        </FirstDataProvider>
      </BrowserPlace>
    </LocationProvider>
  );
}
