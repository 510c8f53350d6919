import { useState } from 'preact/hooks';
import { dataOf, type Schemas } from '../../api/client.ts';
import { Button, Empty, LinkButton, say } from '../../design/index.ts';
import { ConfirmDialog } from '../../design/more.ts';
import { date } from '../../i18n/format.ts';
import { useI18n } from '../../i18n/i18n.tsx';
import { api } from '../../session.ts';
import { QualityOf, State, uptimeText } from '../shared/cells.tsx';
import { ListPage } from '../shared/list-page.tsx';
import { PageHead } from '../shared/page-head.tsx';
import { listFile } from './list-file.ts';
import { withIds } from './name-or-id.ts';
import { AccountLink } from './parts.tsx';

type Service = Schemas['Service'];
type Change = { readonly service: Service; readonly status: Service['status'] };

/** `/console/services` of an admin. */
export default function Services() {
  const [change, setChange] = useState<Change | null>(null);
  const [version, setVersion] = useState(0);
  const { language } = useI18n();
  return (
    <>
      <PageHead title="Services" lead="The services of all providers." />
      <ListPage
        caption="Services"
        file={listFile('services')}
        version={version}
        filters={[
          { name: 'q', label: 'Name', type: 'search' },
          {
            name: 'status',
            label: 'Status',
            options: [
              ['', 'Any'],
              ['active', 'Active'],
              ['paused', 'Not listed'],
              ['removed', 'Removed'],
            ],
          },
          { name: 'category', label: 'Category', placeholder: 'data' },
          { name: 'provider_id', label: 'Provider', placeholder: 'Label or id' },
        ]}
        ask={async (query, signal) => {
          const asked = { ...(await withIds(query, signal)), limit: 50 };
          const page = await dataOf(api.value.GET('/api/v1/admin/services', { params: { query: asked }, signal }));
          return { rows: page.services, next: page.next_cursor };
        }}
        keyOf={(service) => service.id}
        columns={[
          {
            title: 'Service',
            cell: (row) => (
              <>
                {row.status === 'active' ? (
                  <a class="name service-name" href={`/services/${row.id}`}>
                    {row.name}
                  </a>
                ) : (
                  <span class="name service-name">{row.name}</span>
                )}
                <span class="below">
                  {row.category}, since {date(row.created_at, language, Date.now())}
                </span>
              </>
            ),
          },
          { title: 'Status', cell: (row) => <State value={row.status} /> },
          { title: 'Price', cell: (row) => <span class="price-label">{row.price_label}</span> },
          { title: 'Quality', right: true, cell: (row) => <QualityOf service={row} /> },
          { title: 'Uptime', right: true, cell: (service) => uptimeText(service) },
          { title: 'Provider', cell: (row) => <AccountLink id={row.provider_id} label={row.provider_owner_id} /> },
          { title: 'Actions', bare: true, right: true, cell: (row) => <RowActs service={row} onChoose={setChange} /> },
        ]}
        empty={<Empty title="No services yet">Providers list them with a provider key.</Empty>}
      />
      {change !== null && (
        <ChangeDialog
          change={change}
          onClose={() => setChange(null)}
          onDone={() => setVersion((before) => before + 1)}
        />
      )}
    </>
  );
}

function RowActs({ service, onChoose }: { readonly service: Service; readonly onChoose: (change: Change) => void }) {
  const button = (status: Service['status'], text: string) => (
    <Button
      small
      kind={status === 'removed' ? 'danger' : 'plain'}
      aria-label={`${text} ${service.name}`}
      onClick={() => onChoose({ service, status })}
    >
      {text}
    </Button>
  );
  return (
    <span class="row-acts">
      <LinkButton
        small
        kind="quiet"
        href={`/console/calls?service_id=${service.id}`}
        aria-label={`Calls of ${service.name}`}
      >
        Calls
      </LinkButton>
      {service.status === 'active' && button('paused', 'Pause')}
      {service.status === 'paused' && button('active', 'List')}
      {service.status !== 'removed' && button('removed', 'Remove')}
    </span>
  );
}

const WORDS = {
  active: { verb: 'List', done: 'The service is listed again.' },
  paused: { verb: 'Pause', done: 'The service is paused: it is not listed.' },
  removed: { verb: 'Remove', done: 'The service is removed.' },
} as const;

function ChangeDialog({
  change: { service, status },
  onClose,
  onDone,
}: {
  readonly change: Change;
  readonly onClose: () => void;
  readonly onDone: () => void;
}) {
  const { verb, done } = WORDS[status];
  return (
    <ConfirmDialog
      title={`${verb} ${service.name}?`}
      confirm={status === 'removed' ? 'Remove for good' : `${verb} service`}
      danger={status !== 'active'}
      onClose={onClose}
      act={async () => {
        await dataOf(
          api.value.PATCH('/api/v1/admin/services/{id}', { params: { path: { id: service.id } }, body: { status } }),
        );
        say(done);
        onDone();
      }}
    >
      {status === 'active' && <p>It is listed again, and can be called.</p>}
      {status === 'paused' && (
        <>
          <p>Within a second, it is no longer listed and cannot be called. Calls under way go on.</p>
          <p class="soft">Its provider can list it again. To prevent that, suspend the account.</p>
        </>
      )}
      {status === 'removed' && (
        <p>It is no longer listed and cannot be called. This cannot be undone: its provider has to list it again.</p>
      )}
    </ConfirmDialog>
  );
}
