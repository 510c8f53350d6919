import { SLOTS } from './hash-tags.ts';

/** Which node (`host:port`) has each slot; null: none. */
export type SlotOwners = readonly (string | null)[];

/** A range of `CLUSTER SLOTS`: first slot, last slot, master, replicas. A node is given by host, port, and more. */
type Range = [from: number, to: number, master: [host: string | null, port: number], ...replicas: unknown[]];

/**
 * Reads the reply to `CLUSTER SLOTS`.
 *
 * @param asked host of the node that was asked, because a node that does not know its own name sends none
 */
export function readSlotOwners(reply: unknown, asked: string): SlotOwners {
  const owners = new Array<string | null>(SLOTS).fill(null);
  for (const [from, to, [host, port]] of reply as Range[]) {
    owners.fill(addressOf(host || asked, port), from, to + 1);
  }
  return owners;
}

const addressOf = (host: string, port: number): string => `${host.includes(':') ? `[${host}]` : host}:${port}`;

/** What a node's refusal says about where a slot is. In each case nothing was carried out. */
type Refusal = {
  /** Where the slot is now. Null: this node may have it again soon (it moves, or no node has it). */
  readonly address: string | null;
};

const REFUSALS = /^(MOVED|ASK|TRYAGAIN|CLUSTERDOWN|CROSSSLOT)\b(?: (\d+) (\S*))?/;

/**
 * Reads the error of a node that has refused a command because its keys are elsewhere; null for any other error.
 *
 * `ASK` counts as 'soon', and is not followed: while a slot moves, the keys of a script are split between two nodes, so both refuse
 * (TRYAGAIN) until all have moved.
 */
export function readRefusal(message: string, asked: string): Refusal | null {
  const found = REFUSALS.exec(message);
  if (found === null) return null;
  const [, kind, , node = ''] = found;
  if (kind !== 'MOVED') return { address: null };
  // A node that does not know the other's name says `MOVED 5 :7001`: the host is that of the node that was asked.
  return { address: node.startsWith(':') ? `${asked}${node}` : node };
}

export const hostOf = (address: string): string => address.slice(0, address.lastIndexOf(':'));
