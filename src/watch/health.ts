import { createHash } from 'node:crypto';
import { FAILURE_TEXTS } from '../upstream/failure-texts.ts';
import type { UpstreamClient, UpstreamErrorCode } from '../upstream/index.ts';
import { ANSWER_MS, type Answer, ask } from './ask.ts';

/** How often the health path of a service is asked. */
export const INTERVAL_MS = 60_000;

/** A service with a health path. */
export type Watched = { readonly id: string; readonly endpoint: string; readonly healthPath: string };

/** @returns null if `stopping` ended it */
export function askHealth(
  client: UpstreamClient,
  { id, endpoint, healthPath }: Watched,
  stopping: AbortSignal,
): Promise<Answer | null> {
  return ask(client, { serviceId: id, endpoint, method: 'GET', path: healthPath }, stopping);
}

/**
 * A digest that tells whether an answer is about the listing's present URL. A second copy of the endpoint would have to be erased
 * when an account is closed.
 */
export const digestOf = ({ endpoint, healthPath }: Omit<Watched, 'id'>): string =>
  createHash('sha256').update(`${endpoint}\n${healthPath}`).digest('base64url');

export const isUp = ({ status }: Pick<Answer, 'status'>): boolean => status !== null && status >= 200 && status < 400;

const REASONS: Readonly<Record<UpstreamErrorCode, string>> = {
  ...FAILURE_TEXTS,
  head_timeout: `No answer began within ${ANSWER_MS / 1_000} s.`,
  body_timeout: `No answer began within ${ANSWER_MS / 1_000} s.`,
};

/** Why there was no answer, for the provider. @param failure  as it was stored, perhaps by another version */
export const failureReason = (failure: string | null): string =>
  REASONS[failure as UpstreamErrorCode] ?? 'There was no answer.';

/** Why a service does not count as up, for its provider; undefined if it does. @param failure  as it was stored, perhaps by another version */
export function reasonOf(status: number | null, failure: string | null): string | undefined {
  if (isUp({ status })) return undefined;
  if (status !== null) return `It answered ${status}. Only 2xx and 3xx mean that the service is up.`;
  return failureReason(failure);
}
