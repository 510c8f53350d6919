import { useEffect, useState } from 'preact/hooks';
import { dataOf } from '../../api/client.ts';
import { Button, FailureNote } from '../../design/index.ts';
import { utcDay } from './days.ts';

/** Requests a part of the file. @param cursor of the list; absent: the first part */
export type AskFile = (
  cursor: string | undefined,
) => Promise<{ readonly data?: unknown; readonly error?: unknown; readonly response: Response }>;

/** The API's bound on a file (docs/api.md). */
const ROWS = '10,000';

/**
 * Downloads a list as CSV. A link cannot send the key, which goes into a header, so the file is fetched. A long list is
 * downloaded in parts, and the page says so.
 *
 * @param name the file's name, without its extension
 * @param of what is exported. When it changes, the download begins again with the first part
 * @param ask   asks with `Accept: text/csv` and `parseAs: 'blob'`
 */
export function CsvExport({ name, of, ask }: { readonly name: string; readonly of: string; readonly ask: AskFile }) {
  const [next, setNext] = useState<{ readonly cursor: string; readonly part: number } | null>(null);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  useEffect(() => setNext(null), [of]);
  const download = async (part: number, cursor?: string): Promise<void> => {
    setBusy(true);
    setFailure(null);
    try {
      const asked = ask(cursor);
      const blob = (await dataOf(asked)) as Blob;
      const following = (await asked).response.headers.get('X-ACF-Next-Cursor');
      save(blob, `${name}-${utcDay(Date.now())}${part === 1 ? '' : `-part-${part}`}.csv`);
      setNext(following === null ? null : { cursor: following, part: part + 1 });
    } catch (error) {
      setFailure(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <div class="csv">
      {next !== null && (
        <span class="small soft" role="status">
          One file has at most {ROWS} rows, and there are more.{' '}
          <Button small busy={busy} onClick={() => void download(next.part, next.cursor)}>
            Get part {next.part}
          </Button>
        </span>
      )}
      <Button busy={busy} onClick={() => void download(1)}>
        {busy ? 'Exporting…' : 'Export CSV'}
      </Button>
      {failure !== null && <FailureNote failure={failure} />}
    </div>
  );
}

function save(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // The download reads the blob after this turn.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
