import { BOUGHT_LIST, type CallRow } from '../accounts/call-fields.ts';
import { MAX_KEYS } from '../accounts/key-scope.ts';
import { MAX_DAYS, MAX_KEYS_OF_DAY } from '../accounts/listed-sums.ts';
import type { Refused } from '../accounts/refused-calls.ts';
import type { Sums } from '../accounts/sums-sql.ts';
import { recordsSince } from '../accounts/time-range.ts';
import type { HourUsage } from '../accounts/usage-hours.ts';
import { OUTCOMES } from '../accounts/usage-sql.ts';
import type { selectUsage } from '../accounts/usage-sums.ts';
import type { JsonSchema } from '../http/route.ts';
import type { KeyRecord } from '../keys/caller.ts';
import { COUNT, EXAMPLE, json, list, orNull, record, TEXT, TIME, UUID, usd } from '../openapi/schemas.ts';
import { TAG_PATTERN } from '../platform/call-tag.ts';
import { microsToUsd } from '../platform/money.ts';
import { KEY_FILTER } from './admin/lists.ts';
import { CsvList } from './csv-list.ts';

// The answers of `GET /usage/me` and `GET /usage`: sums over calls, and their records.

const MS: JsonSchema = { type: 'number', minimum: 0, description: 'Milliseconds' };
const DAY: JsonSchema = { type: 'string', format: 'date', description: 'In UTC' };
const SPENT = usd('What they have cost');
const RECORD = record('UsageRecord', BOUGHT_LIST.schemas, { optional: BOUGHT_LIST.optional });
export const RECORDS_SINCE: JsonSchema = {
  type: 'string',
  format: 'date',
  description:
    'The first day (UTC) whose calls have records. Calls of earlier days were dropped. Absent while none were',
};
const COUNTS = { calls: COUNT, free_calls: COUNT, spent: SPENT };
const SUMS = { ...COUNTS, avg_latency_ms: MS };
const DAYS = `Days with calls, newest first; at most ${MAX_DAYS}`;

const REFUNDED = usd('What came back of it later, at any time');
const NOT_OF_PARTS = 'Absent with `tag`, and unless `from` and `to` are whole hours';

const HOURS =
  'While all calls that match are of the last three days (UTC), and `from` and `to` are whole hours: hours with calls, newest first. Not of the ' +
  'sums of a tag, nor of more than 500 pairs of a key and a service';

const TOTALS = {
  total_calls: COUNT,
  free_calls: COUNT,
  total_spent: usd('What all calls that match were charged'),
  total_refunded: { ...REFUNDED, description: `${REFUNDED.description}. ${NOT_OF_PARTS}` },
  avg_latency_ms: MS,
  by_service: list(record('ServiceUsage', { service_id: UUID, service_name: TEXT, ...SUMS })),
};
const TAG = record('TagUsage', { tag: TEXT, ...SUMS });
const TAGS =
  'Tags with calls, those that spent the most first; at most 1 001. The calls of tags without sums of their own are those of the tag ' +
  '`other`. Absent where there are no sums by tag: with `key_id` or `service_id`, for a key with a parent, and unless `from` and `to` are ' +
  'whole days (UTC) or `tag` is given';
const RECORDS = { records: list(RECORD, 'Newest first'), next_cursor: orNull(TEXT), records_since: RECORDS_SINCE };
const OPTIONAL = { optional: ['total_refunded', 'by_hour', 'records_since'] } as const;

const OF_KEY = record(
  'Usage',
  {
    key_id: TEXT,
    owner_id: TEXT,
    ...TOTALS,
    by_day: list(record('DayUsage', { day: DAY, ...COUNTS, refunded: REFUNDED }, { optional: ['refunded'] }), DAYS),
    by_hour: list(record('HourUsage', { hour: TIME, ...COUNTS }), HOURS),
    ...RECORDS,
  },
  OPTIONAL,
);
const KEY = record('KeyUsage', {
  key_id: TEXT,
  label: orNull(TEXT),
  parent_key_id: { ...orNull(TEXT), description: 'The key above it; null: there is none' },
  ...SUMS,
});
const REFUSED = record('RefusedCalls', {
  key_id: TEXT,
  label: orNull(TEXT),
  service_id: UUID,
  service_name: TEXT,
  required: usd('What the call would have held'),
  at: { ...TIME, description: 'When the last one was refused' },
  calls: { ...COUNT, description: 'How many there were on that day (UTC)' },
});
const REFUSED_CALLS =
  'Of keys with calls that the balance did not cover (402 `insufficient_balance`): the last of these calls, the newest first; at most 10 ' +
  'keys. It is there a few seconds after the call, and absent if there is none';
const KEYS_OF_DAY = `Of the keys that spent the most in the whole range, ${MAX_KEYS_OF_DAY} at most: what they spent on this day`;
const KEYS_OF_HOUR = 'Of the keys that the days have: what they spent in this hour';
const OF_ACCOUNT = record(
  'AccountUsage',
  {
    account_id: UUID,
    owner_id: TEXT,
    key_id: { ...orNull(TEXT), description: 'The requested key; null: all keys that the caller sees' },
    ...TOTALS,
    by_key: list(KEY, `Keys with calls, those that spent the most first; at most ${MAX_KEYS}`),
    by_day: list(
      record(
        'AccountDayUsage',
        {
          day: DAY,
          ...COUNTS,
          refunded: REFUNDED,
          by_key: list(record('KeyDayUsage', { key_id: TEXT, ...COUNTS }), KEYS_OF_DAY),
        },
        { optional: ['refunded'] },
      ),
      DAYS,
    ),
    by_hour: list(
      record('AccountHourUsage', {
        hour: TIME,
        ...COUNTS,
        by_key: list(record('KeyHourUsage', { key_id: TEXT, ...COUNTS }), KEYS_OF_HOUR),
      }),
      HOURS,
    ),
    by_tag: list(TAG, TAGS),
    refused: list(REFUSED, REFUSED_CALLS),
    ...RECORDS,
  },
  { optional: [...OPTIONAL.optional, 'by_tag', 'refused'] },
);

const COUNTS_EXAMPLE = { calls: 1, free_calls: 0, spent: 0.002 };
const SUMS_EXAMPLE = { ...COUNTS_EXAMPLE, avg_latency_ms: 17.322 };
const DAY_EXAMPLE = { day: EXAMPLE.time.slice(0, 10), ...COUNTS_EXAMPLE, refunded: 0 };
const HOUR_EXAMPLE = { hour: `${EXAMPLE.time.slice(0, 13)}:00:00.000Z`, ...COUNTS_EXAMPLE };
const TOTALS_EXAMPLE = {
  total_calls: 1,
  free_calls: 0,
  total_spent: 0.002,
  total_refunded: 0,
  avg_latency_ms: 17.322,
  by_service: [{ service_id: EXAMPLE.serviceId, service_name: 'Translate', ...SUMS_EXAMPLE }],
};
const RECORDS_EXAMPLE = { records: [BOUGHT_LIST.example], next_cursor: null };
const OF_KEY_EXAMPLE = {
  key_id: EXAMPLE.keyId,
  owner_id: 'acme-bot',
  ...TOTALS_EXAMPLE,
  by_day: [DAY_EXAMPLE],
  by_hour: [HOUR_EXAMPLE],
  ...RECORDS_EXAMPLE,
};
const OF_ACCOUNT_EXAMPLE = {
  account_id: EXAMPLE.accountId,
  owner_id: 'acme-bot',
  key_id: null,
  ...TOTALS_EXAMPLE,
  by_key: [{ key_id: EXAMPLE.keyId, label: 'research', parent_key_id: null, ...SUMS_EXAMPLE }],
  by_day: [{ ...DAY_EXAMPLE, by_key: [{ key_id: EXAMPLE.keyId, ...COUNTS_EXAMPLE }] }],
  by_hour: [{ ...HOUR_EXAMPLE, by_key: [{ key_id: EXAMPLE.keyId, ...COUNTS_EXAMPLE }] }],
  by_tag: [{ tag: 'customer-17', ...SUMS_EXAMPLE }],
  refused: [
    {
      key_id: EXAMPLE.keyId,
      label: 'research',
      service_id: EXAMPLE.serviceId,
      service_name: 'Translate',
      required: 0.002,
      at: EXAMPLE.time,
      calls: 3,
    },
  ],
  ...RECORDS_EXAMPLE,
};

const FILTERS = {
  service_id: { type: 'string', maxLength: 36, description: 'Only calls of this service' },
  outcome: {
    type: 'string',
    enum: [...OUTCOMES],
    description: 'Only records of this outcome, `refunded` for any reason; the sums are of all outcomes',
  },
} as const;
const LISTED = {
  fileName: 'usage.csv',
  entries: 'records',
  columns: BOUGHT_LIST.names,
  cursor: { maxLength: 36, example: EXAMPLE.usageId },
  exampleRow: BOUGHT_LIST.example,
} as const;
export const KEY_LIST = new CsvList({
  ...LISTED,
  filters: FILTERS,
  page: json('The usage of this key', OF_KEY, OF_KEY_EXAMPLE),
});
export const ACCOUNT_LIST = new CsvList({
  ...LISTED,
  filters: {
    key_id: { ...KEY_FILTER, description: 'Only calls of this key, without those below it' },
    ...FILTERS,
    tag: {
      type: 'string',
      pattern: TAG_PATTERN,
      description:
        'Only calls with this tag. With `key_id` or `service_id`, and of a key with a parent, it filters the records and not the sums; ' +
        'otherwise sums are of the tag, and `by_service` and `by_key` are empty',
    },
  },
  page: json('The usage of the account', OF_ACCOUNT, OF_ACCOUNT_EXAMPLE),
});

type Usage = Awaited<ReturnType<typeof selectUsage>>;
/** A page of calls, and the cursor of the next one. */
export type CallPage = { readonly calls: readonly CallRow[]; readonly next: string | null };

export const keyUsageJson = (key: KeyRecord, usage: Usage, page: CallPage): object => ({
  key_id: key.keyId,
  owner_id: key.ownerId,
  ...totalsJson(usage),
  by_day: usage.byDay.map((sums) => ({ day: sums.day, ...countsJson(sums), ...refundedJson(usage, sums.day) })),
  ...hoursJson(usage, (sums) => countsJson(sums)),
  ...recordsJson(usage, page),
});

/** @param keyId the requested key, or null */
export const accountUsageJson = (
  by: KeyRecord,
  keyId: string | null,
  refused: readonly Refused[],
  usage: Usage,
  page: CallPage,
): object => ({
  account_id: by.accountId,
  owner_id: by.ownerId,
  key_id: keyId,
  ...totalsJson(usage),
  by_key: usage.byKey.map((sums) => ({
    key_id: sums.keyId,
    label: sums.label,
    parent_key_id: sums.parentKeyId,
    ...sumsJson(sums),
  })),
  by_day: usage.byDay.map((sums) => ({ day: sums.day, ...withKeysJson(sums), ...refundedJson(usage, sums.day) })),
  ...hoursJson(usage, withKeysJson),
  ...(usage.byTag === null ? {} : { by_tag: usage.byTag.map((sums) => ({ tag: sums.tag, ...sumsJson(sums) })) }),
  ...(refused.length === 0 ? {} : { refused: refused.map(refusedJson) }),
  ...recordsJson(usage, page),
});

const withKeysJson = (sums: HourUsage | Usage['byDay'][number]) => ({
  ...countsJson(sums),
  by_key: sums.byKey.map((ofKey) => ({ key_id: ofKey.keyId, ...countsJson(ofKey) })),
});

const hoursJson = ({ byHour }: Usage, jsonOf: (sums: HourUsage) => object): object =>
  byHour === null ? {} : { by_hour: byHour.map((sums) => ({ hour: sums.hour.toISOString(), ...jsonOf(sums) })) };

const refusedJson = (last: Refused): object => ({
  key_id: last.keyId,
  label: last.label,
  service_id: last.serviceId,
  service_name: last.serviceName,
  required: microsToUsd(last.requiredMicros),
  at: last.at.toISOString(),
  calls: last.calls,
});

const refundedJson = ({ refundedDays }: Usage, day: string): object =>
  refundedDays === null ? {} : { refunded: microsToUsd(refundedDays.get(day) ?? 0) };

function totalsJson({ total, byService, refundedDays }: Usage): object {
  const refunded = [...(refundedDays ?? new Map<string, number>()).values()].reduce((sum, micros) => sum + micros, 0);
  return {
    total_calls: total.calls,
    free_calls: total.freeCalls,
    total_spent: microsToUsd(total.spentMicros),
    ...(refundedDays === null ? {} : { total_refunded: microsToUsd(refunded) }),
    avg_latency_ms: averageMs(total.latencySumUs, total.latencyCount),
    by_service: byService.map((sums) => ({
      service_id: sums.serviceId,
      service_name: sums.serviceName,
      ...sumsJson(sums),
    })),
  };
}

const recordsJson = ({ horizonMs }: Usage, { calls, next }: CallPage): object => ({
  records: calls.map(BOUGHT_LIST.json),
  next_cursor: next,
  ...recordsSince(horizonMs),
});

const countsJson = ({ calls, freeCalls, spentMicros }: Sums) => ({
  calls,
  free_calls: freeCalls,
  spent: microsToUsd(spentMicros),
});

const sumsJson = (sums: Sums) => ({
  ...countsJson(sums),
  avg_latency_ms: averageMs(sums.latencySumUs, sums.latencyCount),
});

/** Milliseconds with 3 decimals; 0 if there is nothing to average. */
function averageMs(sumUs: number, count: number): number {
  return count === 0 ? 0 : Math.round(sumUs / count) / 1_000;
}
