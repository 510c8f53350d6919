import { ApiFailure, dataOf } from '../../api/client.ts';
import { api } from '../../session.ts';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

type Query = Readonly<Record<string, string>>;

/**
 * The filters of a list in the form of the API. People also type the label of an account or the name of a service, but the API
 * takes only ids.
 */
export async function withIds(query: Query, signal: AbortSignal): Promise<Query> {
  const entries = await Promise.all(
    Object.entries(query).map(async ([name, value]) => [name, await idOf(name, value, signal)] as const),
  );
  return Object.fromEntries(entries);
}

async function idOf(name: string, value: string, signal: AbortSignal): Promise<string> {
  const asked = { params: { query: { q: value, limit: 2 } }, signal };
  if (UUID.test(value)) return value.toLowerCase();
  const isAccount = name === 'account_id' || name === 'provider_id';
  // These are ids, not labels: those of keys, and the words for actors and subjects that are neither keys nor accounts.
  const mayBeLabel =
    (name === 'actor' || name === 'subject') && !/^(acf_[0-9A-Za-z]{22}|create-admin|system|all)$/.test(value);
  if (isAccount || mayBeLabel) {
    const { accounts } = await dataOf(api.value.GET('/api/v1/admin/accounts', asked));
    return theOnly(accounts, 'account', 'label', value).account_id;
  }
  if (name === 'service_id') {
    const { services } = await dataOf(api.value.GET('/api/v1/admin/services', asked));
    return theOnly(services, 'service', 'name', value).id;
  }
  return value;
}

function theOnly<Found>(found: readonly Found[], thing: string, by: string, text: string): Found {
  const [only, another] = found;
  if (only !== undefined && another === undefined) return only;
  const message =
    only === undefined
      ? `No ${thing} has "${text}" in its ${by}.`
      : `Several ${thing}s have "${text}" in their ${by}. Copy the id from the list of ${thing}s.`;
  throw new ApiFailure('not_found', message, 0, null);
}
