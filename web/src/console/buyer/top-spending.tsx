import type { ComponentChildren } from 'preact';
import { Empty, LinkButton } from '../../design/index.ts';
import { Bar, Card, Table } from '../../design/more.ts';
import { count, percent } from '../../i18n/format.ts';
import { useI18n } from '../../i18n/i18n.tsx';
import { callsOfKey, callsOfTag, keyNames, type Usage } from './usage.ts';

const SHOWN = 6;

/** Spending by service. */
export const TopServices = ({ usage }: { readonly usage: Usage }) => (
  <TopSpending
    what="Service"
    total={usage.total_spent}
    rows={usage.by_service.map(({ service_id, service_name, calls, spent }) => ({
      id: service_id,
      name: (
        <a class="break" href={`/services/${service_id}`}>
          {service_name}
        </a>
      ),
      callsAt: `/console/calls?service_id=${service_id}`,
      calls,
      spent,
    }))}
  />
);

/** Spending by key. @param from the first day (UTC) of `usage` */
export function TopKeys({ usage, from }: { readonly usage: Usage; readonly from: string }) {
  const names = keyNames(usage.by_key);
  return (
    <TopSpending
      what="Key"
      total={usage.total_spent}
      rows={usage.by_key.map(({ key_id, calls, spent }) => ({
        id: key_id,
        name: (
          <span class="break" title={key_id}>
            {names.get(key_id)}
          </span>
        ),
        callsAt: callsOfKey(key_id, from),
        calls,
        spent,
      }))}
    />
  );
}

/** Spending by tag, as callers have stated it. @param from the first day (UTC) of `usage` */
export const TopTags = ({ usage, from }: { readonly usage: Usage; readonly from: string }) => (
  <TopSpending
    what="Tag"
    total={usage.total_spent}
    rows={(usage.by_tag ?? []).map(({ tag, calls, spent }) => ({
      id: tag,
      name: <span class="break">{tag}</span>,
      callsAt: callsOfTag(tag, from),
      calls,
      spent,
    }))}
  />
);

/** @param rows  of 30 days, those that spent the most first */
function TopSpending({
  what,
  total,
  rows: all,
}: {
  readonly what: 'Service' | 'Key' | 'Tag';
  readonly total: number;
  readonly rows: readonly {
    readonly id: string;
    readonly name: ComponentChildren;
    /** Where their calls are. */
    readonly callsAt: string;
    readonly calls: number;
    readonly spent: number;
  }[];
}) {
  const { language } = useI18n();
  const rows = all.slice(0, SHOWN);
  const left = all.length - rows.length;
  return (
    <Card title={`${what}s by spending, 30 days`} flush>
      {rows.length === 0 ? (
        <Empty title="No calls yet" action={<LinkButton href="/">Find a service</LinkButton>}>
          The services that are called are listed here.
        </Empty>
      ) : (
        <Table
          caption={`${what}s by spending in the last 30 days`}
          rows={rows}
          keyOf={({ id }) => id}
          columns={[
            {
              title: what,
              cell: ({ name, spent }) => (
                <div class="share">
                  {name}
                  <Share share={total > 0 ? spent / total : 0} language={language} />
                </div>
              ),
            },
            {
              title: 'Calls',
              right: true,
              cell: ({ callsAt, calls }) => <a href={callsAt}>{count(calls, language)}</a>,
            },
            { title: 'Spent', amount: ({ spent }) => spent },
          ]}
        />
      )}
      {left > 0 && (
        <p class="card-foot soft">
          And {count(left, language)} more.{' '}
          {what === 'Tag' ? 'GET /api/v1/usage has them all.' : 'The list of calls has them all.'}
        </p>
      )}
    </Card>
  );
}

function Share({ share, language }: { readonly share: number; readonly language: string }) {
  return (
    <span class="share-line" title={`${percent(share, language)} of all spending`}>
      <Bar share={share} />
      <span class="visually-hidden">{percent(share, language)} of all spending</span>
    </span>
  );
}
