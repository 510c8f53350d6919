export { AddressPolicy } from './address-policy.ts';
export { UpstreamClient } from './client.ts';
export { Destination } from './destination.ts';
export { type Origin, parseEndpoint } from './endpoint.ts';
export { isForbiddenLiteral, maySendSecrets } from './listed-address.ts';
export type {
  ResolvedAddress,
  ResponseHead,
  UpstreamCall,
  UpstreamHandler,
  UpstreamOptions,
  UpstreamRequest,
} from './types.ts';
export { EndpointError, UpstreamError, type UpstreamErrorCode } from './upstream-error.ts';
