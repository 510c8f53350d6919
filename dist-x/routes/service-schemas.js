import { CALLABLE, FOUND, OPTIONAL, VIEWS } from '../catalog/listing-fields.js';
import { OPERATION_EXAMPLE, PRICED_OPERATION } from '../catalog/listing-schemas.js';
import { list, record } from '../openapi/schemas.js';
import { RECENT_STATS } from './stats.js';
export const LANG = {
    type: 'string',
    maxLength: 35,
    description: 'Language of the labels; overrides Accept-Language',
};
export const LANG_QUERY = { type: 'object', additionalProperties: false, properties: { lang: LANG } };
export const LISTED_SERVICE = record('ListedService', FOUND.schemas, {
    optional: OPTIONAL,
    description: 'A service as a search shows it. Its description is cut after 200 characters',
});
export const CALLABLE_SERVICE = record('CallableService', {
    ...CALLABLE.schemas,
    operations: list(PRICED_OPERATION, 'How to call it; empty if that is not told'),
    stats: RECENT_STATS,
}, {
    optional: [...OPTIONAL.filter((name) => name !== 'operations'), 'stats'],
    description: 'A service as an agent needs it to make a call',
});
export const CALLABLE_SERVICE_EXAMPLE = {
    ...CALLABLE.example,
    operations: [{ ...OPERATION_EXAMPLE, price_label: '$0.002 per call' }],
    stats: {
        calls: 120,
        success_rate: 0.9829,
        latency_ms: { p50: 18.9, p95: 47, p99: 98 },
        price_charged: { median: 0.002, p95: 0.002 },
    },
};
export const SERVICE = record('Service', VIEWS.owner.schemas, { optional: OPTIONAL });
export const SERVICE_EXAMPLE = VIEWS.owner.example;
/** As operators see it in their list. */
export const SERVICE_OF_ANYBODY = record('ServiceOfAnybody', VIEWS.admin.schemas, { optional: OPTIONAL });
//# sourceMappingURL=service-schemas.js.map