import { FAILURE_TEXTS } from '../upstream/failure-texts.ts';
import type { UpstreamErrorCode } from '../upstream/upstream-error.ts';

/**
 * Why a service failed a call, as told to its provider and to operators: what broke on the way, or what its answer refused. Buyers
 * are not told: a service's addresses, certificates and credentials are its provider's business.
 */
export type FailureCause =
  | UpstreamErrorCode
  | 'credentials_refused'
  | 'quota_used_up'
  | 'redirected'
  | 'not_acceptable';

/** The causes in words. Pages of the console show them, too, so nothing of Node may be imported here. */
export const CAUSE_TEXTS: Readonly<Record<FailureCause, string>> = {
  ...FAILURE_TEXTS,
  credentials_refused: 'The service refused the credentials that its listing adds.',
  quota_used_up: 'The service answered that the credentials which its listing adds have no quota left.',
  redirected: 'The MCP server answered with a redirect, which its clients do not follow.',
  not_acceptable: 'The MCP server answered 406, although the message accepts both media types of the protocol.',
};
