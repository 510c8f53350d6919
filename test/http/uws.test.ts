import { describe, expect, it } from 'vitest';
import { loadUws } from '../../src/http/uws.ts';

describe('the addon', () => {
  it('is the one it is said to be', () => {
    const env: Record<string, string | undefined> = {};
    const { variant, reason, uws } = loadUws(env);
    const isOldNode = Number.parseInt(process.versions.node, 10) < 22;
    if (isOldNode) expect(variant).toBe('legacy');
    // The older one has to say why it was taken.
    expect(reason === undefined).toBe(variant === 'current');
    expect(uws.App).toBeTypeOf('function');
    expect(env.UWS_HTTP_MAX_HEADERS_SIZE).toBe('16384');
  });
});
