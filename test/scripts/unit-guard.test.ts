import childProcess from 'node:child_process';
import dgram from 'node:dgram';
import net from 'node:net';
import { expect, it } from 'vitest';
import '../support/unit-guard.ts';

it('a unit test that opens a server or a socket, or starts a process, fails with advice on what to do', () => {
  expect(() => net.createServer().listen(0)).toThrow('a unit test opened a server');
  expect(() => dgram.createSocket('udp4').bind(0)).toThrow('a unit test opened a socket');
  expect(() => childProcess.spawn('true')).toThrow(/a unit test started a process.*STARTERS/);
});
