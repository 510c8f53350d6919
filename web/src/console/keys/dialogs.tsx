import type { Schemas } from '../../api/client.ts';
import { hasKept } from '../../session/unkept.ts';
import { KeyShownOnce } from '../shared/secret-shown-once.tsx';
import { AgentDialog } from './agent-dialog.tsx';
import { type Changeable, ChangeDialog } from './change-dialog.tsx';
import { CreateDialog } from './create-dialog.tsx';
import type { ActKind } from './key-row.tsx';
import { RevokeDialog } from './revoke-dialog.tsx';
import { RotateDialog } from './rotate-dialog.tsx';
import { activeBelow, type Key, type KeyNode } from './tree.ts';

type Me = Schemas['OwnKey'];
/** The dialog that is open. A secret is shown once, and a message follows it. */
export type Open =
  | { readonly kind: 'create' | 'agent' }
  | { readonly kind: ActKind; readonly node: KeyNode }
  | {
      readonly kind: 'secret';
      readonly made: Pick<Schemas['CreatedKey'], 'key_id' | 'secret'>;
      readonly isChild: boolean;
      readonly done: string;
    };

const ROLES = ['buyer', 'provider', 'admin'] as const;

/** The limits of another key that the key of this tab may change. */
function changeable(me: Me, { key, chain }: KeyNode): Changeable {
  const isChild = key.parent_key_id !== undefined;
  if (me.role === 'admin') return isChild ? 'limits' : 'rate';
  return isChild && chain.includes(me.key_id) ? 'limits' : 'label';
}

/** @param keys all keys on the page */
export function KeyDialogs({
  open,
  keys,
  me,
  onOpen,
  onChanged,
}: {
  readonly open: Open | null;
  readonly keys: readonly Key[];
  readonly me: Me;
  readonly onOpen: (next: Open | null) => void;
  readonly onChanged: (done: string) => void;
}) {
  const close = (): void => onOpen(null);
  switch (open?.kind) {
    case undefined:
      return null;
    case 'create':
      return (
        <CreateDialog
          roles={ROLES.slice(0, ROLES.indexOf(me.role) + 1)}
          onClose={close}
          onMade={(made) => onOpen({ kind: 'secret', made, isChild: false, done: 'The key is made.' })}
        />
      );
    case 'agent':
      return (
        <AgentDialog
          onClose={close}
          onMade={(made) => onOpen({ kind: 'secret', made, isChild: true, done: 'The key is made.' })}
        />
      );
    case 'secret':
      return (
        <KeyShownOnce
          made={open.made}
          isChild={open.isChild}
          onClose={() => {
            // Any of these opens the account again.
            if (!open.isChild) hasKept(me.key_id);
            close();
            onChanged(open.done);
          }}
        />
      );
    case 'change':
      return (
        <ChangeDialog
          of={open.node.key}
          may={changeable(me, open.node)}
          onClose={close}
          onDone={() => onChanged('The key is changed.')}
        />
      );
    case 'rotate':
      return (
        <RotateDialog
          of={open.node.key}
          isOwn={open.node.key.key_id === me.key_id}
          onClose={close}
          onMade={(made) => {
            const isChild = open.node.key.parent_key_id !== undefined;
            onOpen({ kind: 'secret', made, isChild, done: 'The key has a new secret.' });
          }}
        />
      );
    case 'revoke': {
      const below = activeBelow(keys, open.node.key.key_id);
      return (
        <RevokeDialog
          of={open.node.key}
          below={below}
          isOwn={open.node.key.key_id === me.key_id}
          left={keys.filter(
            ({ key_id: id, status, parent_key_id: parent }) =>
              status === 'active' && parent === undefined && id !== open.node.key.key_id,
          )}
          onClose={close}
          onDone={() => onChanged(below.length === 0 ? 'The key is revoked.' : 'The keys are revoked.')}
        />
      );
    }
  }
}
