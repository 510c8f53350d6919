import { describe, expect, it } from 'vitest';
import { dayOfId, isUuid, timeOfId, uuidv7 } from '../../src/platform/ids.ts';

describe('a UUIDv7', () => {
  it('is canonical, has version 7, and contains the time when it was made', () => {
    for (const ms of [0, 1, 1_700_000_000_000, 1_700_000_000_000, 1_700_000_000_001, 2 ** 48 - 1]) {
      const id = uuidv7(ms);
      expect(isUuid(id)).toBe(true);
      expect(id[14]).toBe('7');
      expect('89ab').toContain(id[19]);
      expect(timeOfId(id)).toBe(ms);
    }
    expect(dayOfId(uuidv7(Date.UTC(2026, 10, 21, 23, 59, 59, 999)))).toBe('2026-11-21');
  });

  it('is never made twice, even within one millisecond and across refills of the random pool', () => {
    const ids = new Set(Array.from({ length: 10_000 }, () => uuidv7(1_700_000_000_000)));
    expect(ids.size).toBe(10_000);
  });

  it('sorts by time as text', () => {
    const ids = [5, 50, 500, 5_000].map((ms) => uuidv7(1_700_000_000_000 + ms));
    expect([...ids].sort()).toEqual(ids);
  });

  it('sorts by the order in which ids were made within one millisecond', () => {
    const ids = Array.from({ length: 4_096 }, () => uuidv7(1_700_000_000_002));
    expect([...ids].sort()).toEqual(ids);
  });
});
