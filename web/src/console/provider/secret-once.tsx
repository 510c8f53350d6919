import { Button, Code, Dialog, Note } from '../../design/index.ts';

/** A signing secret is in one answer of the gateway, and here until its owner says that it is kept. */
export function SigningSecretOnce({ secret, onClose }: { readonly secret: string; readonly onClose: () => void }) {
  return (
    <Dialog
      title="Keep this signing secret"
      onClose={onClose}
      actions={
        <Button kind="primary" onClick={onClose}>
          I have kept it
        </Button>
      }
    >
      <p>
        This is the only time that it is shown. Your service checks the signature of each call with it, so that it can
        tell calls of this gateway from all others. The <a href="/docs">API reference</a> says how.
      </p>
      <Code wrap label="Signing secret" text={secret} />
      <Note tone="warn">Keep it where the service runs, and nowhere else.</Note>
    </Dialog>
  );
}
