/** Ids begin with the time, so their ends tell them apart. */
export const shortId = (id: string): string => (id.length > 16 ? `…${id.slice(-8)}` : id);

export function Id({ id, href }: { readonly id: string; readonly href?: string }) {
  const short = <code>{shortId(id)}</code>;
  return href === undefined ? (
    <span class="id" title={id}>
      {short}
    </span>
  ) : (
    <a href={href} class="id" title={id}>
      {short}
    </a>
  );
}
