import { SLOTS } from './tags.js';
/**
 * Reads the reply to `CLUSTER SLOTS`.
 *
 * @param asked  host of the node that was asked: a node that does not know its own name sends none
 */
export function readSlotOwners(reply, asked) {
    const owners = new Array(SLOTS).fill(null);
    for (const [from, to, [host, port]] of reply) {
        owners.fill(addressOf(host || asked, port), from, to + 1);
    }
    return owners;
}
const addressOf = (host, port) => `${host.includes(':') ? `[${host}]` : host}:${port}`;
const REFUSALS = /^(MOVED|ASK|TRYAGAIN|CLUSTERDOWN|CROSSSLOT)\b(?: (\d+) (\S*))?/;
/**
 * Reads the error of a node that has refused a command because of its keys' place; null for any other error.
 *
 * `ASK` counts as 'in a moment', and is not followed: while a slot moves, the keys of a script are partly at either node, so both
 * refuse (TRYAGAIN) until all have moved.
 */
export function readRefusal(message, asked) {
    const found = REFUSALS.exec(message);
    if (found === null)
        return null;
    const [, kind, , place = ''] = found;
    if (kind !== 'MOVED')
        return { address: null };
    // A node that does not know the other's name says `MOVED 5 :7001`: the host is that of the node that was asked.
    return { address: place.startsWith(':') ? `${asked}${place}` : place };
}
export const hostOf = (address) => address.slice(0, address.lastIndexOf(':'));
//# sourceMappingURL=slots.js.map