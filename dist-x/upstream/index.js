export { AddressPolicy } from './address-policy.js';
export { UpstreamClient } from './client.js';
export { Destination } from './destination.js';
export { parseEndpoint } from './endpoint.js';
export { isForbiddenLiteral, maySendSecrets } from './listed-address.js';
export { EndpointError, UpstreamError } from './upstream-error.js';
//# sourceMappingURL=index.js.map