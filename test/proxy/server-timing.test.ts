import fc from 'fast-check';
import { expect, it } from 'vitest';
import { serverTimingLines } from '../../src/proxy/server-timing.ts';

it('Server-Timing gives milliseconds with one decimal, for any duration', () => {
  expect(serverTimingLines(830, 12_345)).toBe(
    '\r\nTiming-Allow-Origin: *\r\nServer-Timing: admission;dur=0.8, service;dur=12.3',
  );
  expect(serverTimingLines(0, 3_600e6)).toMatch(/admission;dur=0\.0, service;dur=3600000\.0$/);
  fc.assert(
    fc.property(fc.nat(), fc.nat(), (admissionUs, serviceUs) => {
      const [, admission, service] =
        /=(\d+\.\d), service;dur=(\d+\.\d)$/.exec(serverTimingLines(admissionUs, serviceUs)) ?? [];
      expect(Math.abs(Number(admission) - admissionUs / 1_000)).toBeLessThanOrEqual(0.0501);
      expect(Math.abs(Number(service) - serviceUs / 1_000)).toBeLessThanOrEqual(0.0501);
    }),
  );
});

it('Server-Timing omits the service for a call that the service did not answer', () => {
  expect(serverTimingLines(830, null)).toMatch(/Server-Timing: admission;dur=0\.8$/);
});
