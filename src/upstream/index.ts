export { AddressPolicy } from './address-policy.ts';
export { UpstreamClient } from './client.ts';
export { type Endpoint, type Origin, parseEndpoint } from './endpoint.ts';
export { EndpointError, UpstreamError, type UpstreamErrorCode } from './errors.ts';
export { isForbiddenLiteral } from './listed-address.ts';
export { Route } from './route.ts';
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
