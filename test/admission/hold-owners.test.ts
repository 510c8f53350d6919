import { expect, it } from 'vitest';
import { type HoldOwner, HoldOwners } from '../../src/admission/hold-owners.ts';

const open = (owner: HoldOwner): HoldOwner => {
  owner.openCalls++;
  return owner;
};

it('each connection has an owner, and the leases of former owners are renewed while they have open calls', () => {
  let ended = 0;
  const owners = new HoldOwners('id', () => ended++);
  const first = open(open(owners.present));
  owners.reconnected();
  const second = open(owners.present);
  owners.reconnected();
  expect(owners.leased()).toEqual(['id.3', 'id', 'id.2']);
  first.ended();
  expect(owners.leased()).toEqual(['id.3', 'id', 'id.2']);
  first.ended();
  expect(owners.leased()).toEqual(['id.3', 'id.2']);
  second.ended();
  expect(owners.leased()).toEqual(['id.3']);
  expect(ended).toBe(3);
});

it('a connection that breaks again and again makes a bounded number of owners', () => {
  const owners = new HoldOwners('id', () => {});
  const all = Array.from({ length: 100 }, () => {
    const owner = open(owners.present);
    owners.reconnected();
    return owner;
  });
  expect(owners.leased()).toHaveLength(33);
  // The leases of all owners are still renewed, including the one that was kept over several connections.
  expect(new Set(owners.leased())).toEqual(new Set(all.map(({ instance }) => instance)));
  for (const owner of all) owner.ended();
  owners.reconnected();
  expect(owners.leased()).toHaveLength(1);
  expect(all.map(({ instance }) => instance)).not.toContain(owners.present.instance);
});
