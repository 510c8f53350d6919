import type { Schemas } from '../../api/client.ts';
import { comingCost } from '../../cost.ts';
import { Note } from '../../design/index.ts';
import { moment } from '../../i18n/format.ts';
import { mayCostMore, storeOperations, type Terms } from './rules.ts';
import { EN } from './service-words.tsx';

type Service = Schemas['Service'];
type Operation = Schemas['Operation'];

/** Everything that decides what a call costs, in the form of a form's fields. */
type Prices = {
  readonly price: number;
  readonly maxPrice: number | null;
  readonly freeCalls: number;
  readonly onlyOperations: boolean;
  readonly operations: readonly Operation[];
};

/** The terms that the provider wrote last, announced or not. Forms begin with them, and changes apply to them. */
export function writtenLast(service: Service): Prices {
  const { next_price: next } = service;
  const last = comingCost(service);
  return {
    price: last.price,
    maxPrice: last.max_price ?? null,
    freeCalls: next?.free_calls ?? service.free_calls ?? 0,
    onlyOperations: next?.only_operations ?? service.only_operations,
    operations: service.announced_operations ?? service.operations ?? [],
  };
}

const now = (service: Service): Prices => ({
  price: service.price,
  maxPrice: service.max_price ?? null,
  freeCalls: service.free_calls ?? 0,
  onlyOperations: service.only_operations,
  operations: service.operations ?? [],
});

/** Null for operations that the gateway would refuse; it says so when they are saved. */
function termsOf({ price, maxPrice, freeCalls, onlyOperations, operations }: Prices): Terms | null {
  try {
    const operationTerms = operations.length === 0 ? null : storeOperations(operations as never).terms;
    const maxPriceMicros = maxPrice === null ? null : Math.round(maxPrice * 1e6);
    return { priceMicros: Math.round(price * 1e6), maxPriceMicros, freeCalls, onlyOperations, operationTerms };
  } catch {
    return null;
  }
}

/**
 * When changed prices would count, by the gateway's own rule: `at once`, `at once, and ends` what is announced, `then` together with
 * what is announced, or `later`, after the whole notice. Null if nothing changes.
 */
function whenItCounts(service: Service, wanted: Prices): 'at once' | 'at once, and ends' | 'then' | 'later' | null {
  const [before, last, after] = [termsOf(now(service)), termsOf(writtenLast(service)), termsOf(wanted)];
  if (before === null || last === null || after === null) return null;
  if (JSON.stringify(last) === JSON.stringify(after)) return null;
  const isAnnounced = service.next_price !== undefined;
  if (service.price_notice_seconds === 0 || !mayCostMore(before, after))
    return isAnnounced ? 'at once, and ends' : 'at once';
  return isAnnounced && !mayCostMore(last, after) ? 'then' : 'later';
}

/** Says before saving when a change takes effect after which calls may cost more. */
export function Foretold({ service, wanted }: { readonly service: Service; readonly wanted: Prices }) {
  const when = whenItCounts(service, wanted);
  if (when === null || when === 'at once') return null;
  if (when === 'at once, and ends') return <Note>This counts at once, and ends what is announced.</Note>;
  if (when === 'then') {
    return (
      <Note>
        This joins what is announced, and counts at the same time: {moment(service.next_price?.from ?? '', EN)}.
      </Note>
    );
  }
  return (
    <Note tone="warn">
      <span>
        Calls may cost more, so buyers are told first. It counts{' '}
        <strong>{lengthOf(service.price_notice_seconds ?? 0)} after you save</strong>; until then calls cost what they
        do now.
      </span>
    </Note>
  );
}

const UNITS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
] as const;

/** 60 → `1 minute`, 90 → `90 seconds`: the largest unit without a rest. */
function lengthOf(seconds: number): string {
  const [unit, size] = UNITS.find(([, size]) => seconds >= size && seconds % size === 0) ?? (['second', 1] as const);
  return new Intl.NumberFormat(EN, { style: 'unit', unit, unitDisplay: 'long' }).format(seconds / size);
}
