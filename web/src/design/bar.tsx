/**
 * A share of a whole, from 0 to 1. It is only visual: words beside it say the same.
 *
 * @param isFull  nothing of the whole is left
 */
export function Bar({ share, isFull = false }: { readonly share: number; readonly isFull?: boolean }) {
  const width = Math.min(share * 100, 100);
  return (
    <svg class="bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
      <rect width="100" height="4" rx="2" class="bar-whole" />
      <rect width={Math.max(width, share > 0 ? 1 : 0)} height="4" rx="2" class={isFull ? 'bar-full' : 'bar-part'} />
    </svg>
  );
}
