import type { PageRequest } from '../../src/pages/site-contract.ts';
import type { Schemas } from './api/client.ts';
import type { I18n } from './i18n/i18n.tsx';

/** The title of the first view; pages change `document.title` when they are reached without a load. */
export function titleOf(page: PageRequest['page'], data: ReadonlyMap<string, unknown>, { t }: I18n): string {
  if (page === 'service') return serviceTitle((data.get('service') as Schemas['CallableService']).name);
  if (page === 'console') return 'Console · Tollgate';
  if (page === 'failure') return `${t('failure.title')} · Tollgate`;
  if (page === 'not-found') return `${t('notFound.title')} · Tollgate`;
  return t('site.title');
}

export const serviceTitle = (name: string): string => `${name} · Tollgate`;

export function descriptionOf(page: PageRequest['page'], data: ReadonlyMap<string, unknown>, { t }: I18n): string {
  if (page !== 'service') return t('hero.lead');
  return (data.get('service') as Schemas['CallableService']).description.slice(0, 200);
}
