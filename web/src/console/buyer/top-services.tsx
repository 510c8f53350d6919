import { Card, Empty, LinkButton, Table } from '../../design/index.ts';
import { count, percent } from '../../i18n/format.ts';
import { useI18n } from '../../i18n/i18n.tsx';
import type { Usage } from './usage.ts';

const SHOWN = 6;

/** Where the money goes. */
export function TopServices({ usage }: { readonly usage: Usage }) {
  const { language } = useI18n();
  const rows = usage.by_service.slice(0, SHOWN);
  const left = usage.by_service.length - rows.length;
  return (
    <Card title="Services by spending, 30 days" flush>
      {rows.length === 0 ? (
        <Empty title="No calls yet" action={<LinkButton href="/">Find a service</LinkButton>}>
          The services that this key calls stand here.
        </Empty>
      ) : (
        <Table
          caption="Services by spending in the last 30 days"
          rows={rows}
          keyOf={({ service_id }) => service_id}
          columns={[
            {
              title: 'Service',
              cell: ({ service_id, service_name, spent }) => (
                <div class="share">
                  <a class="break" href={`/services/${service_id}`}>
                    {service_name}
                  </a>
                  <Share share={usage.total_spent > 0 ? spent / usage.total_spent : 0} language={language} />
                </div>
              ),
            },
            {
              title: 'Calls',
              right: true,
              cell: ({ service_id, calls }) => (
                <a href={`/console/calls?service_id=${service_id}`}>{count(calls, language)}</a>
              ),
            },
            { title: 'Spent', amount: ({ spent }) => spent },
          ]}
        />
      )}
      {left > 0 && <p class="card-foot soft">And {count(left, language)} more. The list of calls has them all.</p>}
    </Card>
  );
}

function Share({ share, language }: { readonly share: number; readonly language: string }) {
  return (
    <span class="share-line" title={`${percent(share, language)} of all spending`}>
      <svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
        <rect width="100" height="4" rx="2" class="share-all" />
        <rect width={Math.max(share * 100, share > 0 ? 1 : 0)} height="4" rx="2" class="share-part" />
      </svg>
      <span class="visually-hidden">{percent(share, language)} of all spending</span>
    </span>
  );
}
