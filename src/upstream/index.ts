export { AddressPolicy } from './address-policy.ts';
export { UpstreamClient } from './client.ts';
export { Destination } from './destination.ts';
export { type Endpoint, type Origin, parseEndpoint } from './endpoint.ts';
export { isForbiddenLiteral, maySendSecrets } from './listed-address.ts';
export type {
  Lookup,
  ResolvedAddress,
  ResponseHead,
  UpstreamCall,
  UpstreamHandler,
  UpstreamOptions,
  UpstreamRequest,
  UpstreamStats,
} from './types.ts';
export { EndpointError, UpstreamError, type UpstreamErrorCode } from './upstream-error.ts';
