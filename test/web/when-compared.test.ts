import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { whenCompared } from '../../web/src/console/admin/when-compared.ts';

const BEFORE = '2026-11-22T12:00:00.000Z';
const AFTER = '2026-11-22T12:00:07.000Z';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it.each([BEFORE, null])(
  'a comparison that goes on is over when the time of the last one (%s) has moved',
  async (before) => {
    const times = [before, before, AFTER];
    const over = whenCompared(before, async () => ({ checked_at: times.shift() ?? null }));
    await vi.advanceTimersByTimeAsync(14_999);
    expect(times).toEqual([AFTER]);
    await vi.advanceTimersByTimeAsync(1);
    expect(await over).toEqual({ checked_at: AFTER });
    expect(vi.getTimerCount()).toBe(0);
  },
);

it('a comparison that has not ended after two minutes is no longer waited for', async () => {
  let asked = 0;
  const over = whenCompared(BEFORE, async () => {
    asked++;
    return { checked_at: BEFORE };
  });
  await vi.advanceTimersByTimeAsync(120_000);
  expect([await over, asked, vi.getTimerCount()]).toEqual([null, 24, 0]);
});

it('a question that fails ends the wait', async () => {
  const over = whenCompared(BEFORE, () => Promise.reject(new Error('refused')));
  const failed = expect(over).rejects.toThrow('refused');
  await vi.advanceTimersByTimeAsync(5_000);
  await failed;
});
