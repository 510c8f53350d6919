// Where nginx is installed, it reads the requests that reached the service, as another opinion on where they end.

import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import { freePort, isPortFree } from '../../scripts/local/ports.mjs';
import { signalProcess, spawnOwned } from '../../scripts/local/processes.mjs';
import { scratchDir, scratchRunDir } from '../support/stores.ts';
import { until } from '../support/wait.ts';

export const hasNginx = (): boolean => spawnSync('nginx', ['-v'], { stdio: 'ignore' }).error === undefined;

/** One request as nginx read it. */
type NginxRequest = {
  readonly method: string;
  readonly target: string;
  readonly status: number;
  readonly bytes: number;
};

export class NginxReader {
  readonly #port: number;
  readonly #accessLog: string;
  readonly stop: () => Promise<void>;

  private constructor(port: number, accessLog: string, stop: () => Promise<void>) {
    this.#port = port;
    this.#accessLog = accessLog;
    this.stop = stop;
  }

  /** @param serviceUrl  nginx forwards requests to it, and so has to read their bodies */
  static async start(serviceUrl: string): Promise<NginxReader> {
    const [port, dir] = [await freePort(), path.join(scratchDir(), `nginx-${process.pid}`)];
    mkdirSync(dir);
    const [config, accessLog] = [path.join(dir, 'nginx.conf'), path.join(dir, 'access.log')];
    writeFileSync(config, configOf(port, dir, accessLog, serviceUrl));
    const child = spawnOwned({
      runDir: scratchRunDir(),
      name: `nginx-${process.pid}`,
      command: 'nginx',
      args: ['-c', config, '-p', dir],
      logFile: path.join(dir, 'nginx.log'),
    });
    await until(async () => child.hasExited() || !(await isPortFree(port, '127.0.0.1')));
    if (child.hasExited()) throw new Error(readFileSync(path.join(dir, 'nginx.log'), 'utf8'));
    return new NginxReader(port, accessLog, async () => {
      signalProcess(child.record, 'SIGTERM');
      await child.exited;
      child.forget();
    });
  }

  /**
   * Sends the bytes on one connection, and then a request that closes it.
   *
   * @returns the requests that nginx read, including that last one if nginx got that far
   */
  async read(bytes: Buffer): Promise<NginxRequest[]> {
    const before = this.#lines().length;
    const socket = connect(this.#port, '127.0.0.1');
    socket.on('error', () => {});
    socket.resume();
    socket.write(Buffer.concat([bytes, Buffer.from('GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')]));
    await new Promise((resolve) => socket.once('close', resolve));
    // nginx writes a request's line when the request ends, which is before the connection closes.
    return this.#lines()
      .slice(before)
      .map((line) => JSON.parse(line) as NginxRequest);
  }

  #lines(): string[] {
    return readFileSync(this.#accessLog, 'utf8').split('\n').slice(0, -1);
  }
}

const configOf = (port: number, dir: string, accessLog: string, serviceUrl: string): string => `
daemon off;
master_process off;
pid ${dir}/nginx.pid;
error_log ${dir}/error.log;
events { worker_connections 64; }
http {
  log_format reading escape=json '{"method":"$request_method","target":"$request_uri","status":$status,"bytes":$request_length}';
  access_log ${accessLog} reading;
  client_body_temp_path ${dir}/body;
  proxy_temp_path ${dir}/proxy;
  fastcgi_temp_path ${dir}/fastcgi;
  uwsgi_temp_path ${dir}/uwsgi;
  scgi_temp_path ${dir}/scgi;
  large_client_header_buffers 4 64k;
  keepalive_requests 100000;
  lingering_close off;
  server {
    listen 127.0.0.1:${port};
    client_max_body_size 0;
    location / { proxy_pass ${serviceUrl}; proxy_http_version 1.1; proxy_set_header Connection ""; }
  }
}
`;
