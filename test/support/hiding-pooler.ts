import { connect, createServer, type Server } from 'node:net';

/** A row whose only value is `true`, and the same with `false`. */
const YES = Buffer.from('D\0\0\0\x0b\0\x01\0\0\0\x01t', 'latin1');
const NO = Buffer.from('D\0\0\0\x0b\0\x01\0\0\0\x01f', 'latin1');

/**
 * A proxy to a standby that answers a new connection's first question, whether it is a standby, with 'no'. So does a pooler whose
 * connection led to the primary at that moment.
 */
export async function hidingPooler(targetPort: number): Promise<{ readonly port: number; close(): Promise<void> }> {
  const server: Server = createServer((client) => {
    const target = connect(targetPort, '127.0.0.1');
    let isHidden = false;
    client.pipe(target);
    target.on('data', (chunk) => {
      const at = isHidden ? -1 : chunk.indexOf(YES);
      if (at >= 0) NO.copy(chunk, at);
      isHidden ||= at >= 0;
      client.write(chunk);
    });
    for (const socket of [client, target]) {
      socket.on('error', () => {});
      socket.on('close', () => [client, target].map((one) => one.destroy()));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  return { port, close: () => new Promise((resolve) => server.close(() => resolve())) };
}
