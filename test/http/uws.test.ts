import { describe, expect, it } from 'vitest';
import { loadUws } from '../../src/http/uws.ts';

describe('the addon', () => {
  it('is the release that loadUws reports, and has our limit on request heads', () => {
    const env: Record<string, string | undefined> = {};
    const { variant, reason, uws } = loadUws(env);
    const isOldNode = Number.parseInt(process.versions.node, 10) < 22;
    if (isOldNode) expect(variant).toBe('legacy');
    // loadUws must say why it took the older release.
    expect(reason === undefined).toBe(variant === 'current');
    expect(uws.App).toBeTypeOf('function');
    expect(env.UWS_HTTP_MAX_HEADERS_SIZE).toBe('16384');
  });
});
