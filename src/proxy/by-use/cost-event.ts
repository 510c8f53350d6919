import { microsToUsd } from '../../platform/money.ts';

export type Cost = {
  readonly usageId: string;
  readonly amountMicros: number;
  readonly freeTier: boolean;
  readonly balanceMicros: number;
};

/** Whether the caller asks for an event that says what the call cost: `X-ACF-Usage-Event: true`. */
export function wantsUsageEvent(headers: readonly string[]): boolean {
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i] === 'x-acf-usage-event') return (headers[i + 1] as string).toLowerCase() === 'true';
  }
  return false;
}

/**
 * The last event of an event stream.
 *
 * @param isBetweenEvents  false: the service's last event lacks its empty line, which is added so that ours begins anew
 */
export function usageEvent({ usageId, amountMicros, freeTier, balanceMicros }: Cost, isBetweenEvents: boolean): Buffer {
  const data = {
    usage_id: usageId,
    amount: microsToUsd(amountMicros),
    free_tier: freeTier,
    balance: microsToUsd(balanceMicros),
  };
  return Buffer.from(`${isBetweenEvents ? '' : '\n\n'}event: acf.usage\ndata: ${JSON.stringify(data)}\n\n`);
}
