import { BlockList, isIP } from 'node:net';
import type { ResolvedAddress } from './types.ts';

/**
 * IPv4 ranges that are not public unicast: IANA's special-purpose registry (RFC 6890 and successors), plus multicast.
 * Two of them contain 169.254.169.254 and 100.100.100.200, where clouds serve metadata and credentials to their machines.
 */
const SPECIAL_IPV4 = [
  '0.0.0.0/8', // this network, unspecified
  '10.0.0.0/8', // private
  '100.64.0.0/10', // carrier-grade NAT
  '127.0.0.0/8', // loopback
  '169.254.0.0/16', // link-local
  '172.16.0.0/12', // private
  '192.0.0.0/24', // protocol assignments
  '192.0.2.0/24', // documentation
  '192.88.99.0/24', // 6to4 relays, deprecated
  '192.168.0.0/16', // private
  '198.18.0.0/15', // benchmarking
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, broadcast
];

/**
 * In IPv6, only 2000::/3 is allocated for global unicast. Loopback, link-local, unique-local and multicast addresses lie outside
 * it, and so do most forms that carry an IPv4 address: mapped, compatible, NAT64 (64:ff9b::/96, 64:ff9b:1::/48).
 */
const GLOBAL_IPV6 = '2000::/3';
const SPECIAL_IPV6 = [
  '2001::/23', // protocol assignments: Teredo, ORCHID, benchmarking
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4: carries an IPv4 address
  '3fff::/20', // documentation
];

const LOOPBACK = ['127.0.0.0/8', '::1/128'];

const special = listOf(SPECIAL_IPV4.concat(SPECIAL_IPV6));
const globalIpv6 = listOf([GLOBAL_IPV6]);
const loopback = listOf(LOOPBACK);

/** Decides which addresses may be dialled: those of the public internet, and the ranges that the operator allows in addition. */
export class AddressPolicy {
  readonly #allowed: BlockList;
  /** Whether the operator allows any address beyond the public internet. */
  readonly allowsMore: boolean;

  /** @throws RangeError naming the range that is not in CIDR notation. */
  constructor(allowCidrs: readonly string[]) {
    this.#allowed = listOf(allowCidrs);
    this.allowsMore = allowCidrs.length > 0;
  }

  permits(address: string): boolean {
    return isPublic(address) || this.allows(address);
  }

  /** Whether the address is in a range that the operator has allowed because it is part of their own network. */
  allows(address: string): boolean {
    return contains(this.#allowed, address);
  }

  /**
   * All addresses of a name if each may be dialled, otherwise none: a name with both good and forbidden addresses is an attack (or
   * a split-horizon mistake), and is refused as a whole. There is one exception: if the operator allows one of the name's loopback
   * addresses, the forbidden loopback addresses are only dropped. Otherwise allowing 127.0.0.0/8 would not allow `localhost`, which
   * is also ::1.
   */
  select(addresses: readonly ResolvedAddress[]): readonly ResolvedAddress[] {
    const permitted = addresses.filter(({ address }) => this.permits(address));
    const allowsLoopback = permitted.some(({ address }) => contains(loopback, address));
    const onlyLoopbackDropped = addresses.every(
      (candidate) => permitted.includes(candidate) || (allowsLoopback && contains(loopback, candidate.address)),
    );
    return onlyLoopbackDropped ? permitted : [];
  }
}

function isPublic(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return !special.check(address, 'ipv4');
  return family === 6 && contains(globalIpv6, address) && !contains(special, address);
}

function contains(list: BlockList, address: string): boolean {
  const family = isIP(address);
  // isIP accepts 'fe80::1%eth0', but BlockList throws on it. An address with a zone is local by definition, so no list contains it.
  if (family === 0 || address.includes('%')) return false;
  return list.check(address, family === 4 ? 'ipv4' : 'ipv6');
}

function listOf(cidrs: readonly string[]): BlockList {
  const list = new BlockList();
  for (const cidr of cidrs) {
    const match = /^([0-9a-f.:]+)\/([0-9]{1,3})$/i.exec(cidr);
    const address = match?.[1] ?? '';
    const prefix = Number(match?.[2]);
    const family = isIP(address);
    if (family === 0 || prefix > (family === 4 ? 32 : 128)) {
      throw new RangeError(`'${cidr}' is not a range in CIDR notation, such as '10.0.0.0/8'`);
    }
    list.addSubnet(address, prefix, family === 4 ? 'ipv4' : 'ipv6');
  }
  return list;
}
