import { expect, test } from 'vitest';
import { isSilence, refundOf, refundOfAnswer, upstreamApiError } from '../../src/proxy/upstream-failure.ts';
import { UpstreamError, type UpstreamErrorCode } from '../../src/upstream/index.ts';

const failed = (code: UpstreamErrorCode) => new UpstreamError({ code, message: code }, false, false);

test.each<[UpstreamErrorCode, boolean, string, number]>([
  ['reset', true, 'upstream_error', 502],
  ['dns_failed', true, 'upstream_error', 502],
  ['connect_timeout', true, 'upstream_timeout', 504],
  ['dns_timeout', false, 'upstream_timeout', 504],
  ['busy', false, 'upstream_busy', 503],
])(
  '%s counts as silence of the service: %s; is refunded as %s; gives the caller status %i',
  (code, silence, reason, status) => {
    expect(isSilence(failed(code))).toBe(silence);
    expect(refundOf(failed(code))).toBe(reason);
    expect(upstreamApiError(failed(code)).status).toBe(status);
  },
);

test('the refund of an answer depends on its status, on whether the service is an MCP server, and on whose credentials it refuses', () => {
  const refunds = (isMcp: boolean, hasListingCredentialsOnly: boolean, isKeyed = false): string[] =>
    Array.from({ length: 800 }, (_, at) => 200 + at).flatMap((status) => {
      const refund = refundOfAnswer(status, { isMcp, hasListingCredentialsOnly }, isKeyed);
      return refund === null || refund === 'upstream_5xx' ? [] : [`${status} ${refund}`];
    });
  const denied = [401, 407, 429].map((status) => `${status} upstream_denied`);
  const unusable = [...Array.from({ length: 100 }, (_, at) => 300 + at), 406].map(
    (status) => `${status} upstream_error`,
  );
  expect(refunds(false, false)).toEqual([]);
  expect(refunds(false, true)).toEqual(denied);
  expect(refunds(true, false)).toEqual(unusable);
  expect(refunds(false, false, true)).toEqual(['429 upstream_rate_limited']);
  expect(refunds(false, true, true)).toEqual(denied);
  expect(refunds(true, true).sort()).toEqual([...unusable, ...denied].sort());
  expect(
    [499, 500, 599].map((status) => refundOfAnswer(status, { isMcp: false, hasListingCredentialsOnly: true }, false)),
  ).toEqual([null, 'upstream_5xx', 'upstream_5xx']);
});
