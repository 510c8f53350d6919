import type { ComponentChildren } from 'preact';
import type { Schemas } from '../../../api/client.ts';
import { FailureNote, SkeletonRows } from '../../../design/index.ts';
import { Card, type Column, Table } from '../../../design/more.ts';
import type { Resource } from '../../../resource.ts';

export type TabProps = { readonly account: Schemas['AccountDetails']; readonly onChanged: () => void };

/** How many of the newest entries are shown. The full list has the rest. */
export const NEWEST = 20;

/** A short list on the account's page. */
export function Short<Row>({
  caption,
  list,
  columns,
  keyOf,
  empty,
  more,
}: {
  readonly caption: string;
  readonly list: Resource<readonly Row[]>;
  readonly columns: readonly Column<Row>[];
  readonly keyOf: (row: Row) => string;
  readonly empty: ComponentChildren;
  readonly more?: ComponentChildren;
}) {
  return (
    <Card flush>
      {list.failure !== null && (
        <div class="card-note">
          <FailureNote failure={list.failure} retry={list.reload} />
        </div>
      )}
      {list.data === null ? (
        list.failure === null && <SkeletonRows count={4} />
      ) : list.data.length === 0 ? (
        empty
      ) : (
        <Table caption={caption} columns={columns} rows={list.data} keyOf={keyOf} />
      )}
      {more !== undefined && list.data !== null && <div class="card-foot">{more}</div>}
    </Card>
  );
}
