import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { unauthorizedError, unavailableError } from '../src/errors.ts';
import { keyOf } from '../src/keys/caller.ts';

describe('an error that must have a header', () => {
  it('states in the header how to authenticate, or when to retry', () => {
    const cause = new Error('away');
    expect(unauthorizedError()).toMatchObject({ status: 401, headers: { 'WWW-Authenticate': 'Bearer' } });
    expect(unavailableError(cause)).toMatchObject({ status: 503, headers: { 'Retry-After': '1' }, cause });
    expect(unavailableError(cause, 'Once more.').message).toBe('Once more.');
  });

  it('is created in one file only', () => {
    const folder = new URL('../src/', import.meta.url);
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
    const makers = files.filter((name) =>
      /new ApiError\(\s*'(?:unauthorized|unavailable)'/.test(readFileSync(new URL(name, folder), 'utf8')),
    );
    expect(makers).toEqual(['errors.ts']);
  });

  it('has the header also when a route needs a key and the caller sends none', () => {
    const refusal = { code: 'unauthorized', headers: { 'WWW-Authenticate': 'Bearer' } };
    expect(() => keyOf({ kind: 'ip' })).toThrow(expect.objectContaining(refusal));
  });
});
