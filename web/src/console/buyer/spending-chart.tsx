import { useAddress, withQuery } from '../../address.tsx';
import { Empty, FailureNote } from '../../design/index.ts';
import { Card, Select, type Series, TimeChart } from '../../design/more.ts';
import { count, money } from '../../i18n/format.ts';
import { useI18n } from '../../i18n/i18n.tsx';
import { useResource } from '../../resource.ts';
import { lastDays, type Timed, timedRows } from '../shared/days.ts';
import { callsOfKey, givenBack, keyNames, type Usage, usageOf } from './usage.ts';

const PERIODS = [
  ['', '30 days'],
  ['7', '7 days'],
  ['90', '90 days'],
  ['365', 'a year'],
] as const;

/** How many keys have their own colour; the others share one. */
const KEYS_SHOWN = 4;

/** Spending by day and key, or by hour while the account is new. The choice is in the address. @param usage of 30 days, and of all services and keys */
export function SpendingChart({ usage }: { readonly usage: Usage | null }) {
  const { language } = useI18n();
  const address = useAddress();
  const service = address.query.get('service') ?? '';
  const keyId = address.query.get('key') ?? '';
  const period = PERIODS.find(([value]) => value === address.query.get('days'))?.[0] ?? '';
  const days = lastDays(period === '' ? 30 : Number(period), Date.now());
  const from = days[0] ?? '';
  const isAll = service === '' && keyId === '' && period === '';
  const chosen = useResource<Usage | null>(`${from} ${service} ${keyId}`, async (signal) =>
    isAll
      ? null
      : usageOf(
          {
            from,
            limit: 1,
            ...(service === '' ? {} : { service_id: service }),
            ...(keyId === '' ? {} : { key_id: keyId }),
          },
          signal,
        ),
  );
  const shown = isAll ? usage : chosen.data;
  const timed = timedRows(days, shown?.by_day ?? [], shown?.by_hour);
  const title = `Spending by ${timed.unit}`;
  const services = usage?.by_service ?? [];
  const names = keyNames(usage?.by_key ?? []);
  const choose = (name: string, value: string): void => address.go(withQuery(address, { [name]: value }), true);
  return (
    <Card
      title={title}
      actions={
        <div class="chart-choices">
          <Select
            label="Service"
            value={service}
            onChange={(event) => choose('service', event.currentTarget.value)}
            options={[
              ['', 'All services'],
              ...services.map(({ service_id, service_name }) => [service_id, service_name] as const),
              // A shared address may name a service that was not called in this period.
              ...(service === '' || services.some(({ service_id }) => service_id === service)
                ? []
                : [[service, shown?.by_service[0]?.service_name ?? 'Another service'] as const]),
            ]}
          />
          {(names.size > 1 || keyId !== '') && (
            <Select
              label="Key"
              value={keyId}
              onChange={(event) => choose('key', event.currentTarget.value)}
              options={[
                ['', 'All keys'],
                ...names,
                ...(keyId === '' || names.has(keyId)
                  ? []
                  : [[keyId, keyNames(shown?.by_key ?? []).get(keyId) ?? 'Another key'] as const]),
              ]}
            />
          )}
          <Select
            label="Time"
            value={period}
            onChange={(event) => choose('days', event.currentTarget.value)}
            options={PERIODS}
          />
        </div>
      }
    >
      {chosen.failure !== null && <FailureNote failure={chosen.failure} retry={chosen.reload} />}
      <div aria-busy={shown === null || chosen.loading}>
        {shown?.total_spent === 0 ? (
          <Empty title="Nothing was spent">
            {shown.total_calls === 0
              ? 'No calls in this time. What calls cost is shown here.'
              : 'All calls in this time were free or refunded.'}
          </Empty>
        ) : (
          <TimeChart
            label={title}
            times={timed.times}
            unit={timed.unit}
            stacked
            series={seriesOf(timed, shown?.by_key ?? [], from)}
            format={(value) => money(value, language)}
            language={language}
            height={220}
          />
        )}
      </div>
      <p class="small soft">
        {shown === null
          ? '…'
          : `${money(shown.total_spent, language)} for ${count(shown.total_calls, language)} ` +
            `${shown.total_calls === 1 ? 'call' : 'calls'}${givenBack(shown.total_refunded, language)}, ` +
            `${count(shown.free_calls, language)} of them used a free call. ${timed.unit === 'day' ? 'Days' : 'Hours'} are UTC.`}
      </p>
    </Card>
  );
}

/** What a day and an hour have in common. */
type Spent = {
  readonly spent: number;
  readonly by_key: readonly { readonly key_id: string; readonly spent: number }[];
};

/** One series for each of the keys that spent the most, with a link to its calls, and one for all others. */
function seriesOf({ rows }: Timed<Spent>, byKey: Usage['by_key'], from: string): Series[] {
  const keys = byKey.filter(({ spent }) => spent > 0);
  if (keys.length < 2) return [{ name: 'Spent', kind: 'bar', values: rows.map((row) => row?.spent ?? null) }];
  const all = rows.map((row) => micros(row?.spent));
  const names = keyNames(keys);
  const shown = keys.slice(0, KEYS_SHOWN).map(({ key_id: id }) => ({
    id,
    name: names.get(id) ?? id,
    values: rows.map((row) => micros(row?.by_key.find(({ key_id }) => key_id === id)?.spent)),
  }));
  const known = (values: readonly number[]) => values.map((value, at) => (rows[at] === undefined ? null : usd(value)));
  const others = all.map((spent, at) => shown.reduce((left, { values }) => left - (values[at] ?? 0), spent));
  return [
    ...shown.map(({ id, name, values }) => ({
      name,
      kind: 'bar' as const,
      href: callsOfKey(id, from),
      values: known(values),
    })),
    ...(keys.length > KEYS_SHOWN ? [{ name: 'Other keys', kind: 'bar' as const, values: known(others) }] : []),
  ];
}

/** Micro-USD are whole numbers, so the rest for the other keys is exact. */
const micros = (amount = 0): number => Math.round(amount * 1e6);
const usd = (amount: number): number => amount / 1e6;
