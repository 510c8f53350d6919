import { afterAll, beforeAll, beforeEach } from 'vitest';
import { Catalog } from '../../src/catalog/catalog.ts';
import { OperationsReader } from '../../src/catalog/operations/operations-reader.ts';
import type { Route } from '../../src/http/route.ts';
import type { KeyRecord } from '../../src/keys/caller.ts';
import type { Sql } from '../../src/platform/postgres.ts';
import { servicesRoutes } from '../../src/routes/services.ts';
import { Sealer } from '../../src/secrets/sealer.ts';
import { ServiceSecrets } from '../../src/secrets/service-secrets.ts';
import { AddressPolicy } from '../../src/upstream/index.ts';
import { addAccount, openTestDatabase } from '../support/accounts.ts';
import { type Asked, ask, bodyOf, NO_NOTICE, NO_WATCH, refusalOf } from '../support/listings.ts';

/** The operator allows calls to one private address. */
export const addresses = new AddressPolicy(['10.1.2.3/32']);
/** Prices change at once: test/integration/price-notice.test.ts is about announced ones. */
const watch = NO_WATCH;
export const secrets = new ServiceSecrets(new Sealer([Buffer.alloc(32, 'test key')]));
export const log = { warn: () => {}, error: () => {} };

/** A legal listing. */
export const BODY = {
  name: 'Weather',
  description: 'Forecasts',
  endpoint: 'http://service.example/api',
  price: 0.002,
  category: 'data',
};

// These belong to the test file that runs `useServices`.

export let sql: Sql;
/** The catalogs of two gateways on one database. */
export let catalog: Catalog;
export let elsewhere: Catalog;
let routes: Route[];
export let routesElsewhere: Route[];
export let provider: KeyRecord;
export let stranger: KeyRecord;
export let admin: KeyRecord;
export let buyer: KeyRecord;

/** Sets up the service routes of two gateways on one database, and new keys for each test. */
export function useServices(): void {
  let close: () => Promise<void>;
  beforeAll(async () => {
    ({ sql, close } = await openTestDatabase());
    catalog = new Catalog({ sql, log });
    elsewhere = new Catalog({ sql, log });
    await Promise.all([catalog.start(), elsewhere.start()]);
    routes = servicesRoutes({
      catalog,
      sql,
      operations: new OperationsReader(sql),
      maxListings: 20,
      addresses,
      secrets,
      notice: NO_NOTICE,
      watch,
    });
    routesElsewhere = servicesRoutes({
      catalog: elsewhere,
      sql,
      operations: new OperationsReader(sql),
      maxListings: 20,
      addresses,
      secrets,
      notice: NO_NOTICE,
      watch,
    });
  });
  afterAll(async () => {
    await Promise.all([catalog.stop(), elsewhere.stop()]);
    await close();
  });
  beforeEach(async () => {
    provider = await addAccount(sql, 'provider');
    stranger = await addAccount(sql, 'provider');
    admin = await addAccount(sql, 'admin');
    buyer = await addAccount(sql, 'buyer');
  });
}

export const request = (line: string, asked: Asked = {}) => ask(routes, line, asked);
export const post = (body: object, by: KeyRecord = provider) => request('POST /services', { by, body });
export const refused = (line: string, asked: Asked = {}) => refusalOf(request(line, asked));
export const create = async (fields: object = {}, by = provider): Promise<string> =>
  bodyOf(await post({ ...BODY, ...fields }, by)).id;
