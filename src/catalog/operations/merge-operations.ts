import { type Operation, OperationFault, operationKey, type StoredOperations, storeOperations } from './operation.ts';

/** A change of one operation: the fields that change, null for removed ones, or `remove` for the whole operation. */
export type OperationChange = ({ readonly method: string; readonly path: string } | { readonly tool: string }) & {
  readonly remove?: true;
} & { readonly [field: string]: unknown };

/** An operation of the result, and how faults name it: by its position in the request, if the request has changed it. */
type Merged = { readonly operation: Operation; readonly field: string };

const CLEARED = null;

/**
 * Applies changes to operations, field by field. An operation is found by tool, or by method and template without regard to the
 * names in braces. Operations that the changes do not name are kept unchanged, and new ones come last. All rules are checked on the
 * result.
 *
 * Tested by test/catalog/operations/merge-operations.test.ts.
 *
 * @param check throws for an operation that its listing's protocol does not allow, naming the field
 * @returns null if no operation is left
 * @throws OperationFault
 */
export function mergeOperations(
  base: readonly Operation[],
  changes: readonly OperationChange[],
  check: (operation: object, field: string) => void,
): StoredOperations | null {
  const merged = new Map<string, Merged>(
    base.map((operation) => [operationKey(operation), { operation, field: `operations: ${nameOf(operation)}` }]),
  );
  const named = new Map<string, string>();
  for (const [index, change] of changes.entries()) {
    const field = `operations.${index}`;
    const key = operationKey(change);
    const twin = named.get(key);
    if (twin !== undefined) throw new OperationFault(field, `names the same operation as ${twin}`);
    named.set(key, field);
    const before = merged.get(key)?.operation;
    if (change.remove === true) {
      refuseBadRemoval(change, before, field);
      merged.delete(key);
    } else merged.set(key, { operation: changed(before, change), field });
  }
  const result = [...merged.values()];
  for (const { operation, field } of result) check(operation, field);
  if (result.length === 0) return null;
  return storeOperations(
    result.map(({ operation }) => operation),
    (index) => (result[index] as Merged).field,
  );
}

function refuseBadRemoval(change: OperationChange, before: Operation | undefined, field: string): void {
  if (before === undefined)
    throw new OperationFault(field, `cannot be removed: there is no operation ${nameOf(change)}`);
  const other = Object.keys(change).find((name) => !['method', 'path', 'tool', 'remove'].includes(name));
  if (other !== undefined) throw new OperationFault(`${field}.${other}`, 'is not allowed together with remove');
}

/** The path keeps its names in braces, because schemas refer to them. */
function changed(before: Operation | undefined, { remove: _, ...fields }: OperationChange): Operation {
  const all: object = { ...fields, ...before, ...withoutIdentity(fields) };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== CLEARED)) as Operation;
}

function withoutIdentity(fields: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !['method', 'path', 'tool'].includes(name)));
}

const nameOf = (of: Operation | OperationChange): string =>
  ('tool' in of ? of.tool : `${of.method} ${of.path}`) as string;
