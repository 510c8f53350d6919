/** The address if it leads to a web page; null for anything else, such as `javascript:`. */
export function webAddress(text: string | undefined): string | null {
  try {
    const { protocol, href } = new URL(text ?? '');
    return protocol === 'http:' || protocol === 'https:' ? href : null;
  } catch {
    return null;
  }
}
