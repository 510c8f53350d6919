import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { useAddress } from '../../address.tsx';
import { ApiFailure, dataOf, type Schemas } from '../../api/client.ts';
import { Badge, Button, Empty, FailureNote, LinkButton, Note, SkeletonPage, say } from '../../design/index.ts';
import { ConfirmDialog, useChosenInView } from '../../design/more.ts';
import { type Resource, useResource } from '../../resource.ts';
import { api, session } from '../../session.ts';
import { unsaved } from '../../unsaved.ts';
import { ServiceState } from '../shared/cells.tsx';
import { PageHead } from '../shared/page-head.tsx';
import { nameOfService } from './service-names.ts';
import { EN, NextPrice } from './service-words.tsx';

type Service = Schemas['Service'];

/** The props of a page of one service. */
export type TabProps = {
  readonly service: Service;
  /** Shows the service from an answer of the API. */
  readonly show: (service: Service) => void;
  readonly reload: () => void;
};

const TABS = [
  ['', 'Listing'],
  ['operations', 'Operations'],
  ['calls', 'Calls and errors'],
  ['quality', 'Quality'],
] as const;

/**
 * The service that was shown last, and to whom: its head and tabs stay while the next of its pages is loading, or fails to load.
 */
let last: { readonly keyId: string | undefined; readonly service: Service } | null = null;

/** A service: its name, what can be done with it, and one of its pages. */
export function ServiceFrame({
  id,
  tab,
  content: Content,
}: {
  readonly id: string;
  readonly tab: string;
  readonly content: ComponentType<TabProps>;
}) {
  const asked = useResource(`service ${id}`, (signal) =>
    dataOf(api.value.GET('/api/v1/services/{id}', { params: { path: { id }, query: { lang: EN } }, signal })),
  );
  // The answer to a change is newer than an earlier reading.
  const [changed, setChanged] = useState<{ readonly of: Service | null; readonly service: Service } | null>(null);
  const current = changed !== null && changed.of === asked.data ? changed.service : asked.data;
  const keyId = session.value?.me.key_id;
  const tabs = useChosenInView<HTMLElement>(`${tab} ${current?.id}`);
  if (current !== null) last = { keyId, service: current };
  const service = last !== null && last.keyId === keyId && last.service.id === id ? last.service : null;
  useReloadAt(service?.next_price?.from, asked.reload);
  if (service === null) {
    return (
      <>
        {asked.failure === null && <HeadWaiting name={nameOfService(id)} />}
        <NotShown of={asked} />
      </>
    );
  }
  // Anybody may read a listing; only its provider sees the endpoint.
  if (service.endpoint === undefined) {
    return (
      <Empty title="Not one of yours" action={<LinkButton href={`/services/${id}`}>See its public page</LinkButton>}>
        This service belongs to another account.
      </Empty>
    );
  }
  const isRemoved = service.status === 'removed';
  const show = (next: Service): void => setChanged({ of: asked.data, service: next });
  return (
    <>
      <Where />
      <PageHead
        title={service.name}
        lead={
          <span class="row">
            <ServiceState value={service.status} />
            <span class="small">{service.price_label}</span>
          </span>
        }
        actions={<Acts service={service} show={show} />}
      />
      {current !== null && asked.failure !== null && <FailureNote failure={asked.failure} retry={asked.reload} />}
      {service.next_price !== undefined && (
        <Note tone="warn">
          <span>
            <strong>Announced:</strong> <NextPrice service={service} />. Until then calls cost what they do now. Buyers
            see this notice, too.
          </span>
        </Note>
      )}
      <nav class="tabs" aria-label="Pages of this service" ref={tabs}>
        {TABS.filter(([name]) => !isRemoved || name === 'calls').map(([name, title]) => (
          <a
            key={name}
            class="tab"
            href={`/console/services/${id}${name === '' ? '' : `/${name}`}`}
            aria-current={name === tab ? 'page' : undefined}
          >
            {name === 'operations' && service.protocol === 'mcp' ? 'Tools' : title}
          </a>
        ))}
      </nav>
      {isRemoved && (
        <Note>This service was removed for good. Its calls and earnings stay; it has no statistics any more.</Note>
      )}
      {current === null ? (
        <NotShown of={asked} />
      ) : (
        (!isRemoved || tab === 'calls') && <Content service={current} show={show} reload={asked.reload} />
      )}
    </>
  );
}

const Where = () => (
  <nav class="small" aria-label="Where this is">
    <a href="/console/services">Services</a>
  </nav>
);

/** As high as the head of a service, so that nothing moves when its state, its price and its buttons are known. */
const HeadWaiting = ({ name }: { readonly name: string }) => (
  <>
    <Where />
    <PageHead
      title={name}
      lead={
        <span class="row">
          <Badge>…</Badge>
        </span>
      }
      actions={<span class="skeleton acts-waiting" aria-hidden="true" />}
    />
  </>
);

/** The longest delay of a browser's timer. */
const MAX_WAIT_MS = 2 ** 31 - 1;

/** Announced terms count from that time on, and the page updates by itself. */
function useReloadAt(from: string | undefined, reload: () => void): void {
  useEffect(() => {
    if (from === undefined) return;
    // A gateway may be a moment late.
    const ms = Math.max(0, Date.parse(from) - Date.now()) + 1_000;
    const timer = setTimeout(reload, Math.min(ms, MAX_WAIT_MS));
    return () => clearTimeout(timer);
  }, [from, reload]);
}

function NotShown({ of }: { readonly of: Resource<Service> }) {
  if (of.failure === null) return <SkeletonPage shape="figures" />;
  if (!(of.failure instanceof ApiFailure) || of.failure.status !== 404) {
    return <FailureNote failure={of.failure} retry={of.reload} />;
  }
  return (
    <Empty title="There is no such service" action={<LinkButton href="/console/services">To your services</LinkButton>}>
      The address may be mistyped.
    </Empty>
  );
}

type Asking = 'pause' | 'remove' | 'list' | null;

function Acts({ service, show }: Pick<TabProps, 'service' | 'show'>) {
  const address = useAddress();
  const [asking, setAsking] = useState<Asking>(null);
  const [failure, setFailure] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const params = { path: { id: service.id } };
  const setStatus = async (status: 'active' | 'paused'): Promise<void> => {
    show(await dataOf(api.value.PATCH('/api/v1/services/{id}', { params, body: { status } })));
    say(status === 'paused' ? `${service.name} is paused: it is not listed.` : `${service.name} is listed.`);
  };
  const resume = async (): Promise<void> => {
    setBusy(true);
    setFailure(null);
    await setStatus('active').catch(setFailure);
    setBusy(false);
  };
  if (service.status === 'removed') return null;
  const isListed = service.status === 'active';
  return (
    <>
      {/* One button: after the act the focus is still on it. */}
      <Button
        kind={isListed ? 'plain' : 'primary'}
        busy={busy}
        onClick={() => (isListed ? setAsking('pause') : unsaved.value ? setAsking('list') : void resume())}
      >
        {isListed ? 'Pause' : 'List it'}
      </Button>
      {isListed && <LinkButton href={`/services/${service.id}`}>Public page</LinkButton>}
      <Button kind="danger" onClick={() => setAsking('remove')}>
        Remove
      </Button>
      {failure !== null && <FailureNote failure={failure} />}
      {asking === 'pause' && (
        <ConfirmDialog
          title={`Pause ${service.name}?`}
          confirm="Pause service"
          danger={false}
          act={() => setStatus('paused')}
          onClose={() => setAsking(null)}
        >
          <p>
            Within a second, buyers can no longer call it. Calls under way go on. You can list it again at any time.
          </p>
        </ConfirmDialog>
      )}
      {asking === 'list' && (
        <ConfirmDialog
          title={`List ${service.name} without the changes?`}
          confirm="List it without them"
          danger={false}
          act={() => setStatus('active')}
          onClose={() => setAsking(null)}
        >
          <p>What you changed on this page is not saved yet. Buyers see the service as it was saved last.</p>
        </ConfirmDialog>
      )}
      {asking === 'remove' && (
        <ConfirmDialog
          title={`Remove ${service.name}?`}
          confirm="Remove service"
          act={async () => {
            await dataOf(api.value.DELETE('/api/v1/services/{id}', { params }));
            say(`${service.name} is removed.`);
            address.go('/console/services');
          }}
          onClose={() => setAsking(null)}
        >
          <p>
            This is for good: the service leaves the catalog, and nobody can call it again. Its calls and earnings stay;
            its statistics do not. To stop it for a while, pause it.
          </p>
        </ConfirmDialog>
      )}
    </>
  );
}
