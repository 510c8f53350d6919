/** The bound of a price in src/catalog/listing.ts. */
const MAX_PRICE_USD = 10_000;

/**
 * What somebody typed as an amount in US dollars: the number for the API, or what is wrong with it. Default: a price.
 *
 * @param least the smallest valid amount
 */
export function readAmount(
  text: string,
  { least = 0, most = MAX_PRICE_USD }: { readonly least?: number; readonly most?: number } = {},
): { readonly usd: number; readonly fault: null } | { readonly usd: null; readonly fault: string } {
  const value = text.trim();
  if (/^\d*,\d+$/.test(value))
    return { usd: null, fault: `must have a point in place of the comma: ${value.replace(',', '.')}` };
  if (!/^\d{1,15}(\.\d*)?$|^\.\d+$/.test(value))
    return { usd: null, fault: 'must be an amount in US dollars, such as 0.002' };
  if ((value.split('.')[1] ?? '').length > 6) return { usd: null, fault: 'must have at most 6 decimals' };
  const usd = Number(value);
  if (usd < least) return { usd: null, fault: 'must be more than 0' };
  return usd > most ? { usd: null, fault: `must be at most $${most.toLocaleString('en')}` } : { usd, fault: null };
}
