import type { Schemas } from '../../api/client.ts';
import { type Cost, comingCost, costWords, isByUse } from '../../cost.ts';
import { Badge } from '../../design/index.ts';
import { ago, moment, money } from '../../i18n/format.ts';
import { operationName } from './operation-draft.ts';

type Service = Schemas['Service'];

/** The console speaks English. */
export const EN = 'en';
export const usd = (amount: number): string => money(amount, EN);
const WORDS = {
  language: EN,
  t: (_: string, { price, max }: { price: string; max: string }) => `${price} up to ${max}`,
};
/** `$0.002 up to $0.05`. */
export const usdCost = (cost: Cost): string => costWords(cost, WORDS);
export const callPrice = (cost: Cost): string =>
  cost.price === 0 && !isByUse(cost) ? 'Free' : `${usdCost(cost)} per call`;

/** Maximum operations whose coming prices are named; others are only counted. */
const MAX_NAMED = 3;

/** The announced changes, if a price may rise: only what differs from now. */
export function NextPrice({ service }: { readonly service: Service }) {
  const { next_price: next } = service;
  if (next === undefined) return null;
  const coming = callPrice(comingCost(service));
  const parts = [
    ...(coming === callPrice(service) ? [] : [coming]),
    ...(next.free_calls === undefined
      ? []
      : [next.free_calls === 0 ? 'no free calls' : `${next.free_calls} free calls`]),
    ...comingOperations(service),
    ...(next.only_operations === undefined
      ? []
      : [`calls that match no operation are ${next.only_operations ? 'refused' : 'served'}`]),
  ];
  return (
    <span>
      {parts.length === 0 ? 'other prices' : parts.join(', ')} from{' '}
      <time dateTime={next.from}>{moment(next.from, EN)}</time>
    </span>
  );
}

/** Absent in lists. */
function comingOperations({ next_price: next }: Service): string[] {
  const coming = next?.operations ?? [];
  if (coming.length > MAX_NAMED) return [`other prices of ${coming.length} operations`];
  return coming.map(({ price, old_price: old, max_price: max, old_max_price: oldMax, ...operation }) => {
    const name = operationName(operation);
    if (price === undefined) return `${name} no longer an operation`;
    const what = `${name} for ${usdCost({ price, max_price: max })}`;
    return old === undefined ? what : `${what} instead of ${usdCost({ price: old, max_price: oldMax })}`;
  });
}

export function Reachable({ service }: { readonly service: Service }) {
  if (service.reachable === undefined) return <Badge>Not checked yet</Badge>;
  return service.reachable ? <Badge tone="good">Answers</Badge> : <Badge tone="bad">No answer</Badge>;
}

/** The URL of the health path, and how the last check ended. */
export function Health({ service: { health } }: { readonly service: Service }) {
  if (health === undefined) return <>Not asked</>;
  return (
    <span class="stack-tight">
      <span>
        {health.up === undefined ? (
          <Badge>Not asked yet</Badge>
        ) : (
          <Badge tone={health.up ? 'good' : 'bad'}>{health.status ?? 'No answer'}</Badge>
        )}
        {health.asked_at !== undefined && (
          <span class="faint small" title={moment(health.asked_at, EN)}>
            {' '}
            asked {ago(health.asked_at, EN, Date.now())}
          </span>
        )}
      </span>
      <code class="small break">GET {health.url}</code>
      {health.reason !== undefined && <span class="small">{health.reason}</span>}
    </span>
  );
}

export const uptimeWords = ({ last_24_hours: today, last_30_days: month }: NonNullable<Service['uptime']>): string =>
  `${today === undefined ? '' : `${today}% today, `}${month}% in 30 days`;
