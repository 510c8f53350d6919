/** A positive amount with at most six decimals, or null. */
export function readAmount(text: string): number | null {
  if (!/^\d{1,10}(\.\d{1,6})?$/.test(text.trim())) return null;
  const amount = Number(text);
  return amount > 0 && amount <= 1_000_000_000 ? amount : null;
}
