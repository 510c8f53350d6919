import { expect, test } from 'vitest';
import { isSilence, refundOf, upstreamApiError } from '../../src/proxy/upstream-failure.ts';
import { UpstreamError, type UpstreamErrorCode } from '../../src/upstream/index.ts';

const failed = (code: UpstreamErrorCode) => new UpstreamError({ code, message: code }, false, false);

test.each<[UpstreamErrorCode, boolean, string, number]>([
  ['reset', true, 'upstream_error', 502],
  ['dns_failed', true, 'upstream_error', 502],
  ['connect_timeout', true, 'upstream_timeout', 504],
  ['dns_timeout', false, 'upstream_timeout', 504],
  ['busy', false, 'upstream_busy', 503],
])('%s counts as silence of the service: %s; refunded as %s; the caller gets %i', (code, silence, reason, status) => {
  expect(isSilence(failed(code))).toBe(silence);
  expect(refundOf(failed(code))).toBe(reason);
  expect(upstreamApiError(failed(code)).status).toBe(status);
});
