/** The address if it leads to a web page; null for anything else, such as `javascript:`. */
export function webAddress(text: string | undefined): string | null {
  try {
    const { protocol, href } = new URL(text ?? '');
    return protocol === 'http:' || protocol === 'https:' ? href : null;
  } catch {
    return null;
  }
}

/** The link to a contact. The gateway checks the operator's settings; even so, it leads to a web page or a mail, and to nothing else. */
export const contactAddress = (contact: string | undefined): string | null =>
  webAddress(contact) ?? (contact?.includes('@') ? `mailto:${contact}` : null);
