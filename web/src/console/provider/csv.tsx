import { useState } from 'preact/hooks';
import { Button, FailureNote } from '../../design/index.ts';

/** Saves what the API answers as a file. A link could not carry the key, which never stands in an address. */
export function CsvButton({ name, ask }: { readonly name: string; readonly ask: () => Promise<Blob> }) {
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const save = async (): Promise<void> => {
    setBusy(true);
    setFailure(null);
    try {
      const url = URL.createObjectURL(await ask());
      const link = document.createElement('a');
      link.href = url;
      link.download = name;
      link.click();
      // The browser has begun to read it by then.
      setTimeout(() => URL.revokeObjectURL(url), 10_000);
    } catch (error) {
      setFailure(error);
    }
    setBusy(false);
  };
  return (
    <>
      <Button busy={busy} onClick={() => void save()}>
        {busy ? 'Preparing…' : 'Download CSV'}
      </Button>
      {failure !== null && <FailureNote failure={failure} />}
    </>
  );
}
