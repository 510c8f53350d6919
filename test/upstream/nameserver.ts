import { createSocket } from 'node:dgram';
import { once } from 'node:events';

const A = 1;
const CNAME = 5;
const AAAA = 28;
const SERVFAIL = 2;
const NXDOMAIN = 3;

/**
 * What the nameserver answers for a name: its addresses, or an alias without any address. It can also be `silent` (no answer for
 * that family, or for any), say that the name is `missing` (NXDOMAIN for that family), or answer that it `fails` (SERVFAIL). The
 * name `*.` and a domain is a wildcard for all other names directly below that domain.
 */
export type NameRecord = {
  readonly ipv4?: string[];
  readonly ipv6?: string[];
  readonly alias?: string;
  readonly silent?: 'ipv6' | 'always';
  readonly missing?: 'ipv4';
  readonly fails?: 'ipv6' | 'always';
};

export type Nameserver = { readonly address: string; readonly asked: string[]; close(): Promise<void> };

/** A nameserver (RFC 1035) on loopback, over UDP. It answers NXDOMAIN for a name without a record. */
export async function nameserver(records: Readonly<Record<string, NameRecord>>): Promise<Nameserver> {
  const socket = createSocket('udp4');
  const asked: string[] = [];
  socket.on('message', (question, { port, address }) => {
    const { name, type, end } = readQuestion(question);
    asked.push(name);
    const record = records[name] ?? records[`*.${name.slice(name.indexOf('.') + 1)}`];
    if (record?.silent === 'always' || (record?.silent === 'ipv6' && type === AAAA)) return;
    const fails = record?.fails === 'always' || (record?.fails === 'ipv6' && type === AAAA);
    const isMissing = record === undefined || (record.missing === 'ipv4' && type === A);
    const addresses = (type === A ? record?.ipv4?.map(bytesOfIpv4) : record?.ipv6?.map(bytesOfIpv6)) ?? [];
    const found = addresses.map((bytes) => ({ type, bytes }));
    if (record?.alias !== undefined) found.unshift({ type: CNAME, bytes: bytesOfName(record.alias) });
    const head = Buffer.from(question.subarray(0, 12));
    head.writeUInt16BE(0x8180 | (isMissing ? NXDOMAIN : fails ? SERVFAIL : 0), 2);
    head.writeUInt16BE(found.length, 6);
    head.writeUInt32BE(0, 8);
    const answers = found.map(({ type, bytes }) => {
      // A pointer to the name, the type, class IN, a TTL of 60 s, and the length of the data that follows.
      const start = Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 60, 0, bytes.length]);
      return Buffer.concat([start, bytes]);
    });
    socket.send(Buffer.concat([head, question.subarray(12, end), ...answers]), port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    address: `127.0.0.1:${socket.address().port}`,
    asked,
    async close() {
      socket.close();
      await once(socket, 'close');
    },
  };
}

function readQuestion(message: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = message[at++] as number; length > 0; length = message[at++] as number) {
    labels.push(message.toString('latin1', at, at + length));
    at += length;
  }
  return { name: labels.join('.').toLowerCase(), type: message.readUInt16BE(at), end: at + 4 };
}

const bytesOfName = (name: string): Buffer =>
  Buffer.concat([...name.split('.'), ''].map((label) => Buffer.from(`${String.fromCharCode(label.length)}${label}`)));

const bytesOfIpv4 = (address: string): Buffer => Buffer.from(address.split('.').map(Number));

/** @param address eight groups, without `::` */
const bytesOfIpv6 = (address: string): Buffer =>
  Buffer.from(
    address
      .split(':')
      .map((group) => group.padStart(4, '0'))
      .join(''),
    'hex',
  );
