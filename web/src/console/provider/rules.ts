// The gateway's own checks of a listing: the form says at once what the gateway would say, in the same words. They import no Node.

export { docsUrlFault, healthPathFault, healthUrl } from '../../../../src/catalog/links.ts';
export {
  CATEGORY_PATTERN,
  DEFAULT_TIMEOUT_SECONDS,
  descriptionFault,
  endpointFault,
  MAX_CATEGORY_LENGTH,
  MAX_DESCRIPTION_LENGTH,
  MAX_FREE_CALLS,
  MAX_IDLE_SECONDS,
  nameFault,
  type Terms,
} from '../../../../src/catalog/listing.ts';
export {
  CREDENTIAL_HEADERS,
  headerNameFault,
  MAX_UPSTREAM_HEADERS,
  MAX_UPSTREAM_PARAMETERS,
  originOf,
  parameterNameFault,
  secretValueFault,
} from '../../../../src/catalog/listing-secrets.ts';
export { mayCostMore } from '../../../../src/catalog/notice/may-cost-more.ts';
export { storeOperations } from '../../../../src/catalog/operations/operation.ts';
export { parseTemplate } from '../../../../src/catalog/operations/template.ts';
export { contactFault, displayNameFault, profileUrlFault } from '../../../../src/catalog/providers/profile.ts';
