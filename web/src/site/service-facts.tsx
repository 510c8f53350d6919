import type { ComponentChildren } from 'preact';
import { useAddress } from '../address.tsx';
import type { Schemas } from '../api/client.ts';
import { CopyButton } from '../design/service.ts';
import { duration } from '../i18n/format.ts';
import { useI18n } from '../i18n/i18n.tsx';
import { webAddress } from '../web-address.ts';
import { ServiceProvider } from './service-provider.tsx';

/** What a program must know before it calls, in plain words. */
export function ServiceFacts({ service }: { readonly service: Schemas['CallableService'] }) {
  const { t, language } = useI18n();
  const { origin } = useAddress();
  const seconds = (value: number): string => duration(value * 1_000, language, 'long');
  const docs = webAddress(service.docs_url);
  const isMcp = service.protocol === 'mcp';
  const address = origin + service.proxy_path;
  return (
    <dl class="service-facts small">
      <Fact name={t(isMcp ? 'service.mcpAddress' : 'service.address')}>
        <span class="service-address">
          <code class="break">{address}</code>
          <CopyButton text={address} />
        </span>
      </Fact>
      {service.provider !== undefined && (
        <Fact name={t('service.provider')}>
          <ServiceProvider provider={service.provider} />
        </Fact>
      )}
      {docs !== null && (
        <Fact name={t('service.docs')}>
          <a class="break" href={docs} rel="noopener noreferrer nofollow" target="_blank">
            {docs.replace(/^https?:\/\//, '')} <span aria-hidden="true">↗</span>
          </a>
        </Fact>
      )}
      <Fact name={t('service.timeouts')}>
        {t('service.timeoutHead', { time: seconds(service.timeout_seconds) })}
        {service.idle_seconds !== undefined && ` ${t('service.timeoutIdle', { time: seconds(service.idle_seconds) })}`}
      </Fact>
      {isMcp && <Fact name="MCP">{t('service.mcpWords')}</Fact>}
      {service.only_operations && (
        <Fact name={t('service.only')}>{t(isMcp ? 'service.onlyTools' : 'service.onlyWords')}</Fact>
      )}
      {service.forward_headers !== undefined && service.forward_headers.length > 0 && (
        <Fact name={t('service.forward')}>
          {t('service.forwardWords', { headers: service.forward_headers.join(', ') })}{' '}
          <code class="break">X-ACF-Forward: {service.forward_headers.join(', ')}</code>
        </Fact>
      )}
    </dl>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
