/** `Name: value` on each line. */
export function readHeaders(text: string): {
  readonly headers: Readonly<Record<string, string>>;
  readonly fault: string | null;
} {
  const headers: Record<string, string> = {};
  for (const line of text.split('\n')) {
    if (line.trim() === '') continue;
    const at = line.indexOf(':');
    const name = line.slice(0, Math.max(at, 0)).trim();
    const value = line.slice(at + 1).trim();
    if (name.toLowerCase() === 'authorization')
      return { headers, fault: 'Leave out Authorization: this page sends your key in it.' };
    try {
      new Headers([[name, value]]);
    } catch {
      return { headers, fault: `“${line.trim().slice(0, 40)}” is not a header: write Name: value.` };
    }
    headers[name] = value;
  }
  return { headers, fault: null };
}
