import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { CancelCommand, type Command } from '../../src/admission/commands.ts';
import { SettlementRetries } from '../../src/admission/settlement-retries.ts';
import { CLOCKS } from '../support/clocks.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: [...CLOCKS] });
});
afterEach(() => {
  vi.useRealTimers();
});

it('while Redis is too slow, the pause before a settlement is sent again grows to one second, and no further', () => {
  const sentAt: number[] = [];
  const startedAt = Date.now();
  const retries = new SettlementRetries({
    connected: () => true,
    suspect: () => true,
    probe: 128,
    send: (command: Command) => {
      sentAt.push(Date.now() - startedAt);
      // This attempt gets no reply either.
      retries.add(command as CancelCommand);
    },
  });
  retries.add(new CancelCommand('usage', 'account', 'settlement', () => {}));
  vi.advanceTimersByTime(6_000);
  retries.stop();
  expect(sentAt).toEqual([200, 600, 1_400, 2_400, 3_400, 4_400, 5_400]);
});
