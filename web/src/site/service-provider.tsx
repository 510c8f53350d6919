import type { Schemas } from '../api/client.ts';
import { month } from '../i18n/format.ts';
import { useI18n } from '../i18n/i18n.tsx';
import { webAddress } from '../web-address.ts';

/**
 * Who offers a service, in its own words: plain texts, each isolated from its surroundings (`bdi`), so that a name in another
 * writing direction changes nothing else.
 */
export function ServiceProvider({ provider }: { readonly provider: Schemas['Provider'] }) {
  const { t, language } = useI18n();
  const { display_name: name, contact, url, since, services = 0 } = provider;
  const page = webAddress(url);
  const isSaid = name !== undefined || contact !== undefined || page !== null;
  return (
    <span class="service-provider">
      {name === undefined ? (
        <span>{t('service.providerUnnamed')}</span>
      ) : (
        <strong class="break">
          <bdi>{name}</bdi>
        </strong>
      )}
      {since !== undefined && (
        <span>
          {t('service.providerSince', { since: month(since, language) })} ·{' '}
          {t('service.providerServices', { count: services })}
        </span>
      )}
      {contact !== undefined && (
        <span class="break">
          <Contact contact={contact} />
        </span>
      )}
      {page !== null && (
        <a class="break" href={page} rel="noopener noreferrer nofollow ugc" target="_blank">
          {page.replace(/^https?:\/\//, '')} <span aria-hidden="true">↗</span>
        </a>
      )}
      {isSaid && <span class="faint">{t('service.providerUnchecked')}</span>}
    </span>
  );
}

/** An address of e-mail is a link; nothing else is. */
function Contact({ contact }: { readonly contact: string }) {
  const text = <bdi>{contact}</bdi>;
  return /^[\w.+-]+@[\w-]+(\.[\w-]+)+$/.test(contact) ? <a href={`mailto:${contact}`}>{text}</a> : text;
}
