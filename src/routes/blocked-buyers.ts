import { blockedBuyersIn, PSEUDONYM_PATTERN, withBlock } from '../catalog/blocked-buyers.ts';
import { ApiError } from '../errors.ts';
import type { ApiRequest, ApiResponse, FromSchema, Route } from '../http/route.ts';
import { json, record } from '../openapi/schemas.ts';
import { SERVICE_PARAM } from './named-service.ts';
import { type ChangeDeps, changeListing, ownListing } from './service-changes.ts';

type BlockedBuyersDeps = ChangeDeps & {
  /** The buyer as its provider knows it: the same name as in `X-ACF-Buyer`. */
  readonly pseudonymOf: (accountId: string, providerId: string) => string;
};

const PSEUDONYM = { type: 'string', pattern: PSEUDONYM_PATTERN } as const;
const STATUS = { type: 'string', enum: ['active', 'blocked'] } as const;
const EXAMPLE_BUYER = '5f2b6c1e9a7d4830b1c2d3e4f5a6b7c8';

const BODY = {
  title: 'BuyerStatusChange',
  type: 'object',
  additionalProperties: false,
  required: ['status'],
  properties: {
    status: { ...STATUS, description: '`blocked`: calls of this buyer get 403. `active`: they are accepted again' },
  },
  examples: [{ status: 'blocked' }],
} as const;
type Body = FromSchema<typeof BODY>;

const BUYER = record('BuyerStatus', { buyer: PSEUDONYM, status: STATUS });

/** `PUT /services/{id}/buyers/{buyer}`: blocks or unblocks a buyer. The listing names the blocked ones. */
export function blockedBuyersRoutes(deps: BlockedBuyersDeps): Route[] {
  return [
    {
      method: 'PUT',
      path: '/api/v1/services/:id/buyers/:buyer',
      summary: 'Block a buyer of an own service, or accept its calls again',
      access: ['provider'],
      body: BODY,
      params: {
        ...SERVICE_PARAM,
        buyer: { description: 'The pseudonym of the buyer: X-ACF-Buyer', schema: PSEUDONYM, example: EXAMPLE_BUYER },
      },
      responses: { 200: json('The buyer as it is now', BUYER, { buyer: EXAMPLE_BUYER, status: 'blocked' }) },
      errors: ['service_not_found', 'conflict'],
      handle: (request: ApiRequest<Body>) => setStatus(deps, request),
    },
  ];
}

async function setStatus(deps: BlockedBuyersDeps, request: ApiRequest<Body>): Promise<ApiResponse> {
  const { buyer = '' } = request.params;
  const { status } = request.body;
  if (!new RegExp(PSEUDONYM_PATTERN).test(buyer))
    throw new ApiError(
      'invalid_request',
      'buyer: must be the pseudonym of a buyer, 32 hexadecimal digits in lower case.',
    );
  const isBlocked = status === 'blocked';
  const { providerId, blockedBuyers } = await ownListing(deps.sql, request);
  if (isBlocked && buyer === deps.pseudonymOf(providerId, providerId))
    throw new ApiError('invalid_request', 'buyer: is the account of this service itself, which can always call it.');
  // Even a change without effect would make every gateway read the listing again.
  if (blockedBuyersIn(blockedBuyers).includes(buyer) !== isBlocked) {
    await changeListing(deps, { ...request, query: { dry_run: false } }, async (before) => ({
      patch: { blockedBuyers: withBlock(before.blockedBuyers, buyer, isBlocked) },
      isBased: true,
    }));
  }
  return { status: 200, body: { buyer, status } };
}
