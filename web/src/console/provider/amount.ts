/** As src/catalog/listing.ts has it. */
const MAX_USD = 10_000;

/** What somebody typed as an amount in US dollars: the number for the API, or what is wrong with it. */
export function readAmount(
  text: string,
): { readonly usd: number; readonly fault: null } | { readonly usd: null; readonly fault: string } {
  const value = text.trim();
  if (/^\d*,\d+$/.test(value))
    return { usd: null, fault: `must have a point in place of the comma: ${value.replace(',', '.')}` };
  if (!/^\d{1,9}(\.\d*)?$|^\.\d+$/.test(value))
    return { usd: null, fault: 'must be an amount in US dollars, such as 0.002' };
  if ((value.split('.')[1] ?? '').length > 6) return { usd: null, fault: 'must have at most 6 decimals' };
  const usd = Number(value);
  return usd > MAX_USD ? { usd: null, fault: 'must be at most $10,000' } : { usd, fault: null };
}
