import { dataOf, type Schemas } from '../../api/client.ts';
import { Empty, LinkButton } from '../../design/index.ts';
import { count, day } from '../../i18n/format.ts';
import { api } from '../../session.ts';
import { QualityOf, ServiceState, uptimeText } from '../shared/cells.tsx';
import { ListPage } from '../shared/list-page.tsx';
import { PageHead } from '../shared/page-head.tsx';
import { nameServices } from './service-names.ts';
import { EN, NextPrice, Reachable } from './service-words.tsx';

type Service = Schemas['Service'];
const PAGE = 50;

/** `/console/services`: all listings of the account that are not removed. */
export function ServicesList() {
  return (
    <>
      <PageHead
        title="Services"
        lead="What you offer. Buyers find listed services in the catalog."
        actions={
          <LinkButton kind="primary" href="/console/services/new">
            List a service
          </LinkButton>
        }
      />
      <ListPage<Service>
        caption="Your services"
        keyOf={({ id }) => id}
        ask={async ({ cursor }, signal) => {
          const query = { mine: true, limit: PAGE, lang: EN, ...(cursor === undefined ? {} : { cursor }) };
          const page = await dataOf(api.value.GET('/api/v1/services', { params: { query }, signal }));
          nameServices(page.services);
          return { rows: page.services, next: page.next_cursor ?? null };
        }}
        columns={[
          {
            title: 'Service',
            cell: ({ id, name, category }) => (
              <span class="two-lines">
                <a class="wide-cell" href={`/console/services/${id}`}>
                  {name}
                </a>
                <span class="faint small break">{category}</span>
              </span>
            ),
          },
          { title: 'Status', cell: (service) => <ServiceState value={service.status} /> },
          {
            title: 'Price',
            cell: (service) => (
              <span class="two-lines">
                <span class="nowrap">{service.price_label}</span>
                {service.free_calls !== undefined && (
                  <span class="faint small nowrap">{count(service.free_calls, EN)} free calls</span>
                )}
                {service.next_price !== undefined && (
                  <span class="small">
                    <NextPrice service={service} />
                  </span>
                )}
              </span>
            ),
          },
          { title: 'Quality', right: true, cell: (service) => <QualityOf service={service} /> },
          { title: 'Uptime', right: true, cell: uptimeText },
          { title: 'Endpoint', cell: (service) => <Reachable service={service} /> },
          { title: 'Listed', right: true, cell: ({ created_at: at }) => day(at.slice(0, 10), EN) },
          {
            title: 'More',
            bare: true,
            cell: ({ id, name }) => (
              <a href={`/console/services/${id}/calls`} aria-label={`Calls and errors of ${name}`}>
                Calls and errors
              </a>
            ),
          },
        ]}
        empty={
          <Empty
            title="You have listed nothing yet"
            action={
              <LinkButton kind="primary" href="/console/services/new">
                List a service
              </LinkButton>
            }
          >
            A listing needs a name, the URL of your API and a price. It is public at once.
          </Empty>
        }
      />
    </>
  );
}
