import type { Schemas } from '../../api/client.ts';
import { Badge } from '../../design/index.ts';
import { moment, money } from '../../i18n/format.ts';

type Service = Schemas['Service'];

/** The console speaks English. */
export const EN = 'en';
export const usd = (amount: number): string => money(amount, EN);
export const callPrice = (price: number): string => (price === 0 ? 'Free' : `${usd(price)} per call`);

/** What comes, if a price that may rise is announced. */
export function NextPrice({ next }: { readonly next: NonNullable<Service['next_price']> }) {
  const parts = [
    callPrice(next.price),
    ...(next.free_calls === undefined
      ? []
      : [next.free_calls === 0 ? 'no free calls' : `${next.free_calls} free calls`]),
    ...(next.only_operations === undefined ? [] : ['other rules for calls that match no operation']),
    ...(next.operations === undefined ? [] : ['other prices of operations']),
  ];
  return (
    <span>
      {parts.join(', ')} from <time dateTime={next.from}>{moment(next.from, EN)}</time>
    </span>
  );
}

export function Reachable({ service }: { readonly service: Service }) {
  if (service.reachable === undefined) return <Badge>Not checked yet</Badge>;
  return service.reachable ? <Badge tone="good">Answers</Badge> : <Badge tone="bad">No answer</Badge>;
}
